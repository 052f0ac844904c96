"""Analysis on the sphere: polynomials, harmonics and their sums, point sets, series; the globe."""
