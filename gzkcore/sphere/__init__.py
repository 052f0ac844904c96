"""Analysis on the sphere: polynomials, harmonics, point sets, series of functions."""
