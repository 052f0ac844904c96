"""The command `gzkcore`: for people (tables) and programs (--json).

Results go to stdout, progress and errors to stderr. Exit codes: 0 done; 2 bad input, with one line
that says what is wrong; 130 interrupted. Files are written completely or not at all.

A command imports modules only when it runs, so that --help and --version answer at once.
"""

import contextlib
import errno
import os
import sys
from importlib.metadata import version
from typing import Annotated, Any

from gzkcore._util.wording import printable

__all__ = ["main"]

_INTERRUPTED = 130  # exit code, from typer too


def main(arguments: list[str] | None = None) -> int:
    """Run the command with these arguments, by default the process's; return the exit code."""
    try:
        import typer
    except ImportError:
        return _complain("the command needs more packages: pip install '.[cli]' in the clone")
    from .output import InterruptedWorkError

    try:
        code: int = app()(arguments, prog_name="gzkcore", standalone_mode=False) or 0
        sys.stdout.flush()  # here a full disk can still be reported
    except (KeyboardInterrupt, typer.Abort):
        code = _INTERRUPTED
    except InterruptedWorkError as error:
        _complain(str(error))
        return _INTERRUPTED
    except OSError as error:
        # At its end Python flushes what could not be written: this must not fail again.
        with contextlib.suppress(OSError, ValueError):  # ValueError: it is no file, or is closed
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _complain(_reason(error))
    except MemoryError as error:
        return _complain(f"there is not enough memory; {error}".rstrip("; "))
    except (ValueError, ImportError, NotImplementedError) as error:
        return _complain(str(error))
    except Exception as error:
        if not hasattr(error, "format_message"):  # typer's errors have it
            raise
        return _complain(error.format_message())
    if code == _INTERRUPTED:
        _complain("interrupted; unfinished files were not written")
    return code


def _reason(error: OSError) -> str:
    """Say what is wrong with a file."""
    missing = isinstance(error, FileNotFoundError)
    reason = "there is no such file" if missing else error.strerror
    if error.filename:
        return f"{error.filename}: {reason}"
    if error.errno == errno.EPIPE:  # the reader of standard output has closed it
        return ""
    if error.errno == errno.ENOSPC:  # of standard output, or a temporary file
        return f"could not write: {reason}"
    return str(error) if error.errno is None else str(reason)


def _complain(reason: str) -> int:
    if reason:
        sys.stderr.write(f"gzkcore: {printable(' '.join(reason.split()))}\n")
    return 2


def app() -> Any:
    """Return the application, for `main` and for typer's test runner."""
    import typer

    from .commands_fit import fit
    from .commands_plan import compare, plan
    from .commands_predict import predict
    from .commands_show import demo, info
    from .flags import Command, Group

    application = typer.Typer(
        cls=Group,
        help="Predict from tables with kernels: learn, test, predict, compare.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode="markdown",
    )

    @application.callback()
    def options(
        version: Annotated[
            bool,
            typer.Option(
                "--version", callback=_print_version, is_eager=True, help="Print the version."
            ),
        ] = False,
    ) -> None:
        """Do nothing: --version is done when it is read."""

    for command, example in (
        (demo, "gzkcore demo --plot elevation.png"),
        (fit, "gzkcore fit houses.csv --target price --plot fit.png"),
        (predict, "gzkcore predict model.gzk new.csv --output predicted.csv --std"),
        (plan, "gzkcore plan stations.csv --lat lat --lon lon --gamma 20 --max-error 0.01"),
        (compare, "gzkcore compare protein.csv --target rmsd --plot compare.png"),
        (info, "gzkcore info --json"),
    ):
        application.command(epilog=f"Example: {example}", cls=Command)(command)
    return application


def _print_version(is_asked: bool) -> None:
    import typer

    if is_asked:
        sys.stdout.write(f"gzkcore {version('gzkcore')}\n")
        raise typer.Exit
