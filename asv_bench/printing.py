"""Helpers of the tables: progress, the description of the machine, and printing."""

import importlib.metadata
import json
import math
import os
import platform
import sys
from pathlib import Path

import numpy as np

import gzkcore


def report(text):
    """Show the progress on stderr: on one line of a terminal, line by line in a file."""
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\033[K{text[:100]}")
    elif text:
        sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


def asked_parts(command, options, known, noun="part"):
    """Return the requested parts, by default all, in the order of `known`."""
    check_known(command, options.parts, known, noun)
    return [name for name in known if name in (options.parts or known)]


def check_known(command, asked, known, noun):
    """Stop if a requested name is unknown, and list the known ones."""
    if missing := set(asked) - set(known):
        names = ", ".join(sorted(missing))
        sys.exit(f"{command}: no {noun} {names}; choose from {', '.join(known)}")


def run_parts(command, options, parts):
    """Run the requested parts."""
    for name in asked_parts(command, options, parts):
        parts[name](options)


def machine():
    """Return the properties of the machine and the versions that a number depends on."""
    config = gzkcore.show_config()
    cpu = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = [line for line in info.read_text().splitlines() if line.startswith("model name")]
        cpu = names[0].partition(":")[2].strip() if names else cpu
    versions = {"python": platform.python_version(), "gzkcore": config["version"]}
    for name in ("numpy", "scipy", "scikit-learn", "torch"):
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return {
        "processor": cpu,
        "processors": os.cpu_count(),
        "isa": config["isa"],
        "threads": config["n_threads"],
        "compiler": config["compiler"],
        "blas": sorted({f"{lib['library']} {lib['version']}" for lib in config["blas"]}),
        "load": round(os.getloadavg()[0], 1),
        "versions": versions,
    }


def show(title, rows, notes, options):
    """Print one table; a row is a dict of column to text or number."""
    report("")
    about = machine()
    if options.json:
        out = {"table": title, "rows": rows, "notes": notes, "machine": about}
        sys.stdout.write(json.dumps(out, indent=2) + "\n")
        return
    columns = list(dict.fromkeys(name for row in rows for name in row))
    cells = [[_text(row.get(name, "")) for name in columns] for row in rows]
    width = [max(map(len, column)) for column in zip(columns, *cells, strict=True)]
    lines = [f"### {title}", ""]
    for line in [columns, ["-" * w for w in width], *cells]:
        padded = (cell.ljust(w) for cell, w in zip(line, width, strict=True))
        lines.append(f"| {' | '.join(padded)} |")
    versions = ", ".join(f"{name} {version}" for name, version in about["versions"].items())
    lines += [
        "",
        notes,
        "",
        (
            f"{about['processor']}, {about['processors']} processors; {about['threads']} threads; "
            f"instruction set {about['isa']}; compiler {about['compiler']}; {versions}; "
            f"{', '.join(about['blas'])}."
        ),
    ]
    if about["load"] > 0.5 * about["processors"]:
        lines.append(
            f"**Load {about['load']}: other programs may have had a part in these times.**"
        )
    sys.stdout.write("\n".join([*lines, "", ""]))


def _text(value):
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def mean_and_spread(values):
    """Return mean and standard deviation as text, or the value if there is only one.

    The mean has three digits or, if it is larger, those before the point; the deviation ends where
    the mean does.
    """
    mean = np.mean(values)
    decimals = max(2 - math.floor(math.log10(abs(mean))), 0) if mean else 0
    spread = f" ± {np.std(values, ddof=1):.{decimals}f}" if len(values) > 1 else ""
    return f"{mean:.{decimals}f}{spread}"


def load_arrays(name):
    """Return the arrays of NAME.npz in $GZKCORE_DATA."""
    folder = os.environ.get("GZKCORE_DATA")
    if not folder or not Path(folder, f"{name}.npz").exists():
        sys.exit(f"set GZKCORE_DATA to the folder that holds {name}.npz")
    with np.load(Path(folder, f"{name}.npz")) as data:
        return dict(data)


def load_elevation():
    """Return unit vectors and kilometres from elevation_1deg.npz in $GZKCORE_DATA."""
    data = load_arrays("elevation_1deg")
    return unit_vectors(data["lat"], data["lon"]), data["elevation_m"] / 1000.0


def unit_vectors(lat, lon):
    """Return the points of a globe, given in degrees."""
    lat, lon = np.deg2rad(lat.astype(np.float64)), np.deg2rad(lon.astype(np.float64))
    X = np.column_stack([np.cos(lat) * np.cos(lon), np.cos(lat) * np.sin(lon), np.sin(lat)])
    return X / np.linalg.norm(X, axis=1, keepdims=True)
