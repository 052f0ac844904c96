"""Predict from tables and maps with kernels, with the accuracy of Gaussian processes.

`KernelRegressor` gives standard deviations; all estimators have scikit-learn's interface.

A public name is imported when it is first asked for: what a program doesn't use costs it no time.
`__init__.pyi` lists the names.
"""

import os.path as _path

# Only the sources have this file. Importing pathlib would take as long as all the rest.
if _path.exists(_path.join(__path__[0], "_compiled", "meson.build")):  # noqa: PTH110, PTH118
    from . import _compiled as _compiled  # says what to do if they are not compiled

from gzkcore._util.lazy import attach as _attach

__version__ = "0.1.0"

__getattr__, __dir__, __all__ = _attach(__name__, __file__)
