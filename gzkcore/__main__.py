"""Start the command: `gzkcore`, or `python -m gzkcore`."""

import contextlib
import os
import sys


def main() -> int:
    """Run the command and return its exit code, also on Ctrl-C while it is being imported."""
    _sleep_if_busy()
    try:
        from gzkcore.cli.main import main as command

        return command()
    except KeyboardInterrupt:
        sys.stderr.write("gzkcore: interrupted\n")
        return 130


def _sleep_if_busy() -> None:
    """Let threads that wait for each other sleep if other programs keep the processors busy.

    By default they spin. That is 15 to 30 % faster on idle processors, and several times slower on
    busy ones. OpenMP reads the variable when its library is loaded, so this is the first call.
    """
    with contextlib.suppress(AttributeError, OSError):  # not every system tells the load
        if os.getloadavg()[0] > 1.5 * (os.cpu_count() or 1):
            os.environ.setdefault("OMP_WAIT_POLICY", "passive")


if __name__ == "__main__":
    sys.exit(main())
