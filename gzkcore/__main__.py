"""Start the command: `gzkcore`, or `python -m gzkcore`."""

import sys


def main() -> int:
    """Run the command and return its exit code, also on Ctrl-C while it is being imported."""
    try:
        from gzkcore.cli.main import main as command

        return command()
    except KeyboardInterrupt:
        sys.stderr.write("gzkcore: interrupted\n")
        return 130


if __name__ == "__main__":
    sys.exit(main())
