"""The command `gzkcore`: fit, predict, demo and info, for people (tables) and programs (--json).

Results go to stdout, progress and complaints to stderr. Exit codes: 0 done; 2 bad input, with a line
that says what is wrong; 130 interrupted. Files appear whole or not at all.
"""

from __future__ import annotations

import contextlib
import json
import sys
import time
import warnings
from pathlib import Path
from typing import Annotated

import numpy as np

from . import _pictures
from ._memory import resident_memory
from ._tables import open_table, replacing
from .datasets import LatLonToSphere, off_globe

try:
    import typer
except ImportError:  # the extra is not installed: main() says how to get it
    typer = None  # type: ignore[assignment]

__all__ = ["main"]

INSTALL = "pip install 'gzkcore[cli]'"

# Rows that settle what depends on the data as a whole, such as the centre and the radius.
SAMPLE_ROWS = 16384
SAMPLE_VALUES = 1 << 22
ALPHAS = np.logspace(-8, 2, 21)


def main(arguments=None):
    """Run the command with these arguments (by default the command line's); return the exit code."""
    if typer is None:
        print(f"gzkcore: the command needs a few more packages: {INSTALL}", file=sys.stderr)
        return 2
    try:
        return app()(arguments, prog_name="gzkcore", standalone_mode=False) or 0
    except (KeyboardInterrupt, typer.Abort):
        return 130
    except (ValueError, OSError, ImportError) as error:
        reason = str(error)
    except Exception as error:  # typer's own complaints have no public base class
        if not hasattr(error, "format_message"):
            raise
        reason = error.format_message()
    print("gzkcore:", " ".join(reason.split()), file=sys.stderr)
    return 2


def app():
    """Return the typer application."""
    application = typer.Typer(
        name="gzkcore", help="Kernel ridge regression on random features.",
        add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False,
    )  # fmt: skip
    for command, example in (
        (demo, "gzkcore demo --plot elevation.png"),
        (fit, "gzkcore fit stations.csv --target temperature --lat lat --lon lon --plot map.png"),
        (predict, "gzkcore predict model.gzk new.csv --output predicted.csv"),
        (info, "gzkcore info --json"),
    ):
        application.command(epilog=f"Example: {example}")(command)
    return application


# ---------------------------------------------------------------------------------------------
# Options that several commands have

AsJson = Annotated[bool, "typer.Option('--json', help='JSON on stdout, for programs.')"]


def info():
    pass
