"""Run the papers' tables and figures anew: `python3 run.py papers gegenbauer table2 --quick`."""

import argparse
import sys
from pathlib import Path
from typing import Any

from gzkcore.cli.arguments import PICTURES, check_new
from gzkcore.cli.output import (
    InterruptedWorkError,
    if_interrupted,
    picture_note,
    print_json,
    print_lines,
    progress,
)

from . import reproduce

DESCRIPTION = """Each result is printed beside the paper's, with a verdict. gegenbauer has fig1,
table1, table2 and table3; block has fig1, table1, fig2, table2, table3 and table4. Data are read
from the folder that GZKCORE_DATA names; missing data sets are skipped. Results are saved in
--output after every step: repeat the command to resume."""


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    command = argparse.ArgumentParser("run.py papers", description=DESCRIPTION)
    command.add_argument("paper", help="gegenbauer, block or all")
    command.add_argument("part", nargs="?", help="fig1, table1, fig2, ...; by default all")
    command.add_argument("--quick", action="store_true", help="smaller sizes: minutes, not hours")
    command.add_argument("--seeds", type=int, help="number of repetitions; by default 1 to 3")
    command.add_argument("--download", action="store_true", help="download missing data sets")
    command.add_argument("--output", type=Path, help="a .json file; by default papers[-quick].json")
    command.add_argument("--plot", type=Path, help=".png, .pdf or .svg, a file for each experiment")
    command.add_argument("--force", action="store_true", help="replace existing pictures")
    command.add_argument("--json", action="store_true", help="print JSON")
    return command


def main(arguments: list[str] | None = None) -> int:
    """Run the experiments that the options name, print and draw them; return the exit code."""
    options = parser().parse_args(arguments)
    try:
        return _run(options)
    except InterruptedWorkError as error:
        sys.stderr.write(f"papers: {error}\n")
        return 130
    except (OSError, ValueError, ImportError) as error:
        sys.stderr.write(f"papers: {error}\n")
        return 2


def _run(options: argparse.Namespace) -> int:
    names = reproduce.choose(options.paper, options.part)
    pictures = _pictures(options.plot, names)
    for picture in pictures.values():
        check_new("--plot", picture, PICTURES, options.force)
    output = options.output or Path("papers-quick.json" if options.quick else "papers.json")
    check_new("--output", output, (".json",), force=True)
    with if_interrupted(output), progress() as report:
        results = [
            reproduce.run(
                name, quick=options.quick, seeds=options.seeds, download=options.download,
                output=output, report=report,
            )
            for name in names
        ]  # fmt: skip
    drawn = {result.name: pictures[result.name] for result in results if result.cells and pictures}
    for result in results:
        if result.name in drawn:
            result.plot(drawn[result.name])
    summary: dict[str, Any] = {
        "experiments": [result.to_dict() for result in results],
        "output": str(output),
        "plots": {name: str(path) for name, path in drawn.items()},
    }
    if options.json:
        print_json(summary)
        return 0
    for result in results:
        print_lines(str(result), "")
        if options.plot and result.name not in drawn:
            print_lines(f"Note: {result.name} has no results, and so no picture")
    print_lines(f"Results: {output}")
    for path in drawn.values():
        print_lines(*picture_note(str(path)))
    return 0


def _pictures(plot: Path | None, names: list[str]) -> dict[str, Path]:
    """Return {experiment: its picture}; several experiments get a file each, by name."""
    if plot is None or len(names) == 1:
        return {name: plot for name in names if plot is not None}
    ends = {name: name.replace(" ", "-") for name in names}
    return {name: plot.with_name(f"{plot.stem}-{end}{plot.suffix}") for name, end in ends.items()}


if __name__ == "__main__":
    sys.exit(main())
