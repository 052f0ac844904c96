"""Real data sets by name."""

import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils import Bunch

from gzkcore._util.wording import meant
from gzkcore.rows.open import open_batches

from .downloads import PUBLISHED, fetch, sha256

__all__ = ["load", "open_batches"]

# The sha256 of the files NAME.npz that this version was tested with.
CHECKSUMS = {
    "abalone": "ffc80978880a1604bbefc0413147f580ab399208de310c19b8ccb9499a7ab59f",
    "adult": "8830c425308828e4977932124c160579f58b49e07272a410d25dba05d923cb16",
    "climate_ncep_2p5deg": "f39d902c7ee9cddb28aed40aeef53fa058f46286fedfd2624c1c6f6b3d74a8c2",
    "elevation_1deg": "11665f25f0dc3b59aabf999694765ee82e71b0570523905d7d2bb61fb13f1638",
    "gene_chowdary": "5fd5a5b3daf9fe124c085f757ac2213fe8e454da663fd70e3f63f54c4b8c1529",
    "magic": "092e4a9b646eeee3bc982cf7b5ba9bbde0ef0de706ecba428d76e78cd558d6d4",
    "mushroom": "9890d3a11c1a63e858793ff8e0188e8a36ebe2ec2b9764f1be23fe50375530fb",
    "pendigits_train": "a40fb302f023cf88b716bafea7849d9c3ff16e2da6f5677b302d977678a4462a",
    "protein_casp": "22ede4b9cb6da856e9ea2e8e1ed444c2a7892cd0f189527fde1400df9ac0b7bf",
}
# What these files hold, if their name is not that of a published set.
ABOUT = {
    "climate_ncep_2p5deg": (
        "Monthly mean air temperature, 2.5 degree grid (NOAA PSL, NCEP-NCAR Reanalysis 1)"
    ),
    "elevation_1deg": "Elevation of the Earth, 1 degree grid (NOAA ETOPO5, averaged)",
    "gene_chowdary": (
        "Gene expression of 62 breast and 42 colon tumours, 22,283 genes (Chowdary et al. 2006)"
    ),
    "pendigits_train": "Pen-written digits, 7,494 x 16 (UCI)",
    "protein_casp": "Protein tertiary structure, 45,730 x 9 (UCI)",
}
# The files that have the rows of a published set, under another name.
SAME = {"pendigits": "pendigits_train", "protein": "protein_casp"}
NAMES = tuple(dict.fromkeys(("airports", *CHECKSUMS, *PUBLISHED)))
METRES_PER_FOOT = 0.3048


def load(
    name: Any, data_home: str | os.PathLike[str] | None = None, *, download: bool = True
) -> Bunch:
    """Load a data set by its name, from a folder or from where it is published.

    Parameters
    ----------
    name : str
        ``"airports"`` (28,000 airports, from the package airportsdata); a set in
        ``gzkcore.datasets.downloads.PUBLISHED``, which is downloaded; or the name of a file
        NAME.npz in `data_home`, which has priority. Files whose name is in
        ``gzkcore.datasets.sets.CHECKSUMS`` are checked against a known sha256; other files are not
        checked.
    data_home : str or path, optional
        Folder with the files. By default the value of the environment variable ``GZKCORE_DATA``, or
        else a folder ``gzkcore`` in the cache directory of the user.
    download : bool, default=True
        Whether to download a set that is not in the folder.

    Returns
    -------
    sklearn.utils.Bunch
        The arrays by name, and ``DESCR``, a line about the set. For airports: ``latitude``,
        ``longitude`` (degrees), ``elevation`` (metres) and ``n_dropped``, the number of entries of
        the source without a usable position or elevation.

    Raises
    ------
    ValueError
        If there is no such set, or a file does not match its checksum.
    FileNotFoundError
        If the set is not in the folder, and `download` is False or impossible.
    ImportError
        If the package that downloads or reads it is missing; the message says how to install it.
    OSError
        If its source cannot be reached.

    Notes
    -----
    Downloaded files must keep the sha256 of the first download, which is written to
    ``checksums.json`` beside them. No file is read as a pickle.

    Examples
    --------
    >>> from gzkcore.datasets import load
    >>> airports = load("airports")
    >>> airports.latitude.shape == airports.longitude.shape == airports.elevation.shape
    True
    """
    if name == "airports":
        return _airports()
    plain = isinstance(name, str) and name == Path(name).name != ""
    if not plain or name.endswith(".npz"):
        raise ValueError(
            f"name={name!r} is not the name of a data set; give one without folder and ending, "
            f"such as {', '.join(map(repr, NAMES))}"
        )
    home = home_of(data_home)
    for file in (name, SAME.get(name, name)):
        if (home / f"{file}.npz").is_file():
            return _of_file(file, home / f"{file}.npz")
    remedy = (
        f"there is no {home / f'{name}.npz'}; put {name}.npz in a folder and name it in data_home "
        "or in the variable GZKCORE_DATA"
    )
    if name not in PUBLISHED:
        question = "" if name in NAMES else meant(name, NAMES)
        raise FileNotFoundError(f"data set {name!r} was not found{question}: {remedy}")
    try:
        arrays = fetch(name, home, download)
    except FileNotFoundError as error:
        raise FileNotFoundError(f"data set {name!r}: {remedy}; or: {error}") from None
    return Bunch(**arrays, DESCR=PUBLISHED[name].about)


def home_of(data_home: str | os.PathLike[str] | None) -> Path:
    """Return the folder of the data: this one, else that of GZKCORE_DATA, else a cache."""
    folder = data_home if data_home is not None else os.environ.get("GZKCORE_DATA")
    if folder:
        return Path(folder).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()) / "gzkcore"


def _of_file(name: str, path: Path) -> Bunch:
    """Return the arrays of a file, whose checksum is verified if it is known."""
    checksum = sha256(path)
    if checksum != CHECKSUMS.get(name, checksum):
        raise ValueError(
            f"{path} is not the {name!r} that gzkcore knows: its sha256 is {checksum}, not "
            f"{CHECKSUMS[name]}; replace the file, or rename it to load it without a check"
        )
    if not zipfile.is_zipfile(path):
        raise ValueError(f"{path} is not a .npz file of arrays; replace or remove it")
    with np.load(path, allow_pickle=False) as archive:
        try:
            arrays = dict(archive)
        except ValueError as error:
            raise ValueError(f"{path}: {error}; save arrays of numbers or text") from None
    about = PUBLISHED[name].about if name in PUBLISHED else ABOUT.get(name, f"{name}.npz")
    return Bunch(**arrays | {"DESCR": about})


def _airports() -> Bunch:
    try:
        import airportsdata
    except ImportError as error:
        raise ImportError(
            "the data set 'airports' comes with the package airportsdata: pip install "
            "'gzkcore[cli]' (or pip install airportsdata)"
        ) from error
    keys = ("lat", "lon", "elevation")
    entries: list[Any] = list(airportsdata.load("ICAO").values())
    rows = [[entry[key] for key in keys] for entry in entries]
    values = np.array([[np.nan if v in ("", None) else v for v in row] for row in rows], np.float64)
    latitude, longitude, elevation = (values * (1, 1, METRES_PER_FOOT)).T
    usable = (
        (np.abs(latitude) <= 90)
        & (np.abs(longitude) <= 180)
        & (elevation >= -500)  # the shore of the Dead Sea lies at -430 m
        & (elevation <= 9000)
    )
    n_dropped = int((~usable).sum())
    return Bunch(
        latitude=latitude[usable],
        longitude=longitude[usable],
        elevation=elevation[usable],
        n_dropped=n_dropped,
        DESCR=(
            f"{usable.sum():,} airports of the package airportsdata {airportsdata.__version__}: "
            f"degrees and metres above the sea; {n_dropped} entries without a usable position or "
            "elevation were dropped. An elevation of 0 may also mean that it is not known."
        ),
    )
