"""Checks of the arguments of the commands; each error names the option and the remedy."""

import contextlib
import csv
import functools
import inspect
import math
import shlex
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from gzkcore._util.files import check_writable
from gzkcore._util.wording import in_list

if TYPE_CHECKING:
    from gzkcore.rows.files import Table
    from gzkcore.rows.text import Reading

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
Width = Annotated[int, typer.Option(min=1, help="How many features.")]
Widths = Annotated[str, typer.Option(help="Numbers of features to try.")]
Data = Annotated[
    Path,
    typer.Argument(
        metavar="DATA",
        help="A table: .csv, .tsv, .txt, .dat (also as .gz, .zst or .zip), .parquet or a folder of "
        "such, .feather, .jsonl, .xlsx (book.xlsx::sheet for another than the first), .nc, .npy or "
        ".npz; - for standard input.",
    ),
]
Lat = Annotated[
    str | None,
    typer.Option(help="The column of latitudes, in degrees; with --lon, to use these two alone."),
]
Lon = Annotated[str | None, typer.Option(help="The column of longitudes, in degrees.")]
InputColumns = Annotated[
    str | None, typer.Option(help="The columns a,b,c of the inputs; by default all others.")
]
Drop = Annotated[str | None, typer.Option(help="Columns a,b,c to leave out of all others.")]
KernelName = Annotated[str, typer.Option(help="Name of the kernel in gzkcore.kernels.")]
KernelGamma = Annotated[
    str | None, typer.Option(help="The kernel's gamma: scale, the default, median or a number.")
]
Classify = Annotated[
    bool,
    typer.Option("--classify", help="Treat numbers of the target as labels, as text always is."),
]
READING_OPTIONS: dict[str, Any] = {
    name: Annotated[
        kind,
        typer.Option(f"--{name.replace('_', '-')}", rich_help_panel="How text is read", help=text),
    ]
    for name, (kind, text) in {
        "decimal_comma": (bool, "Numbers have a decimal comma."),
        "encoding": (
            str | None,
            "Such as shift_jis; by default UTF-8, or windows-1252 for what is not.",
        ),
        "thousands": (str | None, "What separates thousands: a point or a comma."),
        "missing": (
            str | None,
            "More words a,b,c for a missing value, in all columns; '' for empty cells alone.",
        ),
        "date_format": (str | None, "The format of dates not understood otherwise: '%d/%m/%y'."),
        "skip_lines": (int, "How many lines stand above the names of the columns."),
        "keep": (str | None, "Columns a,b,c that predict though they seem to be a saved index."),
    }.items()
}
Force = Annotated[bool, typer.Option("--force", help="Replace files that exist already.")]
ForcePlot = Annotated[bool, typer.Option("--force", help="Replace a picture that exists already.")]
NoHatching = Annotated[
    bool, typer.Option("--no-hatching", help="Draw maps also where all rows are far.")
]

KERNEL_RULES = ("scale", "median")  # kernels work out gamma by these rules
MODEL, PICTURES = ".gzk", (".png", ".pdf", ".svg")  # endings of files


class TestBy(NamedTuple):
    """The column by which rows are held out; without one they are drawn at random."""

    last: str | None = None  # the rows of its last dates or largest numbers are held out
    groups: str | None = None  # rows with the same value are held out together
    gaps: str | None = None  # LENGTH or COLUMN=LENGTH: stretches of dates, of each group

    def check(self, target: str, test_fraction: float | None) -> None:
        """Raise ValueError for options that don't go together."""
        options = self._asdict().items()
        given = {f"--test-{name}": value for name, value in options if value is not None}
        if self.last is not None and len(given) > 1:
            raise ValueError(" can't be combined with ".join([*given][:2]) + "; give one of them")
        for name, value in given.items():
            if value == target:
                raise ValueError(f"{name} {value} is the target; name another column")
            if test_fraction == 0:
                raise ValueError(
                    f"{name} {value} can't be combined with --test-fraction 0, which holds out "
                    "nothing; leave one of them out"
                )

    @property
    def at_random(self) -> bool:
        """Whether no column says which rows are held out."""
        return self == TestBy()

    @property
    def columns(self) -> list[str]:
        """The columns that are named."""
        of_gaps = (self.gaps or "").rpartition("=")[0]
        return [name for name in (self.last, of_gaps or None, self.groups) if name is not None]


def reading_of(
    *, decimal_comma: bool = False, thousands: str | None = None, missing: str | None = None,
    date_format: str | None = None, skip_lines: int = 0, keep: str | None = None,
    encoding: str | None = None,
) -> "Reading":  # fmt: skip
    """Return how these options say that a table is read."""
    from gzkcore.rows.text import DEFAULT

    if thousands not in (None, *".,"):
        raise ValueError(
            f"--thousands must be . or ,; got {thousands}; spaces and apostrophes need no option"
        )
    words = DEFAULT.missing if missing is None else frozenset({""})
    if missing:
        words = DEFAULT.missing | {word.lower() for word in names_in(missing)}
        if one := next((word for word in sorted(words) if "=" in word.strip("=")), ""):
            raise ValueError(
                f"--missing {one}: its words are for all columns; give the word alone, or empty "
                "such cells of that column"
            )
    return DEFAULT._replace(
        decimal_comma=decimal_comma, thousands=thousands or "", missing=words,
        date_format=date_format or "", skip_lines=skip_lines,
        keep=() if keep is None else (*(names_in(keep) or [""]),), encoding=encoding or "",
    )  # fmt: skip


def reads_a_table(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of `reading_of` for its parameter `reading`."""

    @functools.wraps(command)
    def with_options(**options: Any) -> None:
        reading = reading_of(**{name: options.pop(name) for name in READING_OPTIONS})
        command(**options, reading=reading)

    own = inspect.signature(command, eval_str=False).parameters
    known = inspect.signature(reading_of).parameters
    more = [known[name].replace(annotation=of) for name, of in READING_OPTIONS.items()]
    with_options.__annotations__ = {**command.__annotations__, **READING_OPTIONS}
    del with_options.__annotations__["reading"]
    with_options.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [*(parameter for name, parameter in own.items() if name != "reading"), *more]
    )
    return with_options


def words_of(options: dict[str, Any]) -> list[str]:
    """Return the words of a command line that set these options, without those left unset."""
    words = []
    for name, value in options.items():
        if value not in (None, False, 0):
            words += [f"--{name.replace('_', '-')}", *([] if value is True else [str(value)])]
    return words


def names_in(text: str) -> list[str]:
    """Return the names that a text lists; names with commas are in quotes."""
    return next(csv.reader([text], skipinitialspace=True), [])


def chosen_columns(
    table: "Table", target: str | None, lat: str | None, lon: str | None, columns: str | None,
    drop: str | None = None, kinds: Mapping[str, Any] | None = None,
) -> tuple[list[str], bool]:  # fmt: skip
    """Return the columns to predict from, and whether they are latitude and longitude alone.

    `kinds` are those of columns that are chosen.
    """
    kinds = kinds or {}
    if lat is not None and kinds:
        raise ValueError("--as can't be combined with --lat and --lon, which say what columns are")
    if (lat is None) != (lon is None):
        raise ValueError("--lat and --lon must be given together")
    if lat is not None and columns is not None:
        raise ValueError("--columns can't be combined with --lat and --lon; leave one of them out")
    if drop is not None and (lat is not None or columns is not None):
        raise ValueError(
            f"--drop {drop} leaves columns out where all others are taken; it can't be combined "
            "with --columns, --lat and --lon"
        )
    if lat is not None and lon is not None:
        if lat.lower().startswith(("lon", "lng")) and lon.lower().startswith("lat"):
            raise ValueError(
                f"--lat {lat} --lon {lon}: these columns seem to be swapped; "
                "swap them, or rename the columns"
            )
        chosen = [lat, lon]
    elif columns is not None:
        chosen = _names_in(columns, table) or [""]
    else:
        chosen = _all_columns(table, target, drop, kinds)
    named = [*([] if target is None else [target]), *chosen]
    table.require(named)
    if twice := [name for name, count in Counter(named).items() if count > 1]:
        raise ValueError(
            f"column {twice[0]!r} is named twice; name the target and each column once"
        )
    chosen = [name for name in chosen if kinds.get(name) != "drop"]
    if not chosen:
        raise ValueError(
            f"{table.path} has only the column {target!r}, the target; add columns to predict from"
        )
    return chosen, lat is not None


def _all_columns(
    table: "Table", target: str | None, drop: str | None, kinds: Mapping[str, Any]
) -> list[str]:
    """Return all columns but the target, those to drop, and a saved index, which is told."""
    table.require([] if target is None else [target])
    table.check_whole()
    table.leave_apart()
    table.index = [name for name in table.index if name not in kinds]
    index = [name for name in table.index if name != target]
    chosen = table.names if target is None else table.beside(target)
    apart = {*index, *table.apart}
    chosen = [name for name in chosen if name not in apart] or chosen
    if index and index[0] not in chosen:
        table.notes.append(
            f"left out as a saved index: {', '.join(map(in_list, index))}; "
            f"--keep {shlex.quote(listed(index))} takes it back"
        )
    dropped = [] if drop is None else _names_in(drop, table)
    table.require(dropped)
    left_out, named = {*dropped}, {*table.reading.keep, *kinds}
    chosen = [name for name in chosen if name not in left_out]
    table.doubtful = {*chosen} - named
    for name in chosen:
        if target and table.twice.get(name) == target:
            raise ValueError(
                f"{table.path}: two columns are called {target!r}, the target; rename one, or "
                f"leave out the second, --drop {name}"
            )
    return chosen


def chosen_kinds(options: list[str], table: "Table") -> dict[str, Any]:
    """Return the kinds of columns that options name, as `TableEncoder` takes them."""
    from gzkcore.tabular.columns.kinds import check_chosen

    kinds: dict[str, Any] = {}
    for option in options:
        name, equals, kind = option.rpartition("=")
        if not equals or name in kinds:
            twice = f"; {name} has a kind already" if equals else ""
            raise ValueError(f"--as {option} must be COLUMN=KIND, once for each column{twice}")
        levels = names_in(kind)
        kinds[name] = levels if len(levels) > 1 else kind
    table.require([*kinds])
    try:
        return check_chosen(kinds, table.names, named=True)
    except ValueError as error:
        told = str(error)
        for name, kind in kinds.items():
            told = told.replace(f"columns[{name!r}]={kind!r}", f"{name}={kind}")
        raise ValueError(f"--as: {told}") from None


def used_kinds(kinds: Mapping[str, Any], columns: list[str], table: "Table") -> dict[str, Any]:
    """Return chosen kinds of columns to predict from, and orders of levels that the table knows."""
    for name, kind in kinds.items():
        if kind != "drop" and name not in columns:
            raise ValueError(f"--as {name}=...: {name} is no column that is predicted from")
    return {name: table.orders[name] for name in columns if name in table.orders} | {**kinds}


def _names_in(text: str, table: "Table") -> list[str]:
    known = {*table.names}
    return [name if name in known else name.strip() for name in names_in(text)]


def listed(names: list[str]) -> str:
    """Return the text that lists these names, see `names_in`."""
    return ",".join(
        '"' + name.replace('"', '""') + '"'
        if not name or name != name.strip() or {",", '"', "\n", "\r"} & {*name}
        else name
        for name in names
    )


def origin(kernel: Any, gamma: str | None) -> str | None:
    """Return the rule of a kernel's gamma, "given" for a number, None for kernels without one."""
    if getattr(kernel, "gamma", None) is None:
        return None
    return "given" if gamma and gamma not in KERNEL_RULES else gamma or "scale"


def kernel_of(name: str, gamma: str | None) -> Any:
    """Return the kernel of a name with this gamma; None stands for the rule scale."""
    from gzkcore.evaluate.methods import OF_HISTOGRAMS, as_any_kernel
    from gzkcore.rows.values import as_number

    is_asked, gamma = gamma is not None, gamma or "scale"
    by_rule = gamma in KERNEL_RULES
    if not by_rule and not 0 < as_number(gamma) < math.inf:
        rules = ", ".join(KERNEL_RULES)
        raise ValueError(f"--gamma must be {rules} or a positive number; got {gamma}")
    if name == "precomputed":
        raise ValueError(
            "--kernel precomputed has no rows to compute features from; choose another"
        )
    if name in OF_HISTOGRAMS:
        raise ValueError(
            f"--kernel {name} needs values >= 0, but this command standardises columns; use "
            "gzkcore.compare in Python, or choose another kernel"
        )
    try:
        kernel = as_any_kernel(name)
    except ValueError as error:
        raise ValueError(str(error).replace(f"kernel={name!r}", f"--kernel {name}")) from None
    own = kernel.get_params().get("gamma")
    if by_rule and isinstance(own, float):
        raise ValueError(
            f"--kernel {name} has no rule {gamma} for its gamma; add a number, such as "
            f"--gamma {own:g}"
        )
    if own is not None:
        kernel.set_params(gamma=gamma if by_rule else float(gamma))
    elif is_asked:
        raise ValueError(f"--gamma {gamma}: the kernel {name} has no gamma; leave --gamma out")
    return kernel


def widths_of(text: str) -> list[int]:
    """Return the numbers of features that a text lists."""
    widths: list[int] = []
    with contextlib.suppress(ValueError):
        widths = [int(word) for word in text.split(",")]
    if not widths or min(widths) < 1:
        raise ValueError(
            f"--n-components must be whole numbers >= 1, such as 64,256,1024; got {text}"
        )
    return widths


def check_free(name: str, path: Path, force: bool) -> None:
    """Raise if a file exists already and may not be replaced."""
    if path.exists() and not force:
        raise ValueError(
            f"{name} {path} exists already; give another name with {name}, or use --force to "
            "replace it"
        )


def check_new(name: str, path: Path | None, endings: tuple[str, ...], force: bool) -> None:
    """Raise before the work, not after it, unless a file of this name can be written."""
    if path is not None:
        if path.suffix.lower() not in endings:
            one_of = "one of " * (len(endings) > 1)
            raise ValueError(f"{name} {path} must end with {one_of}{', '.join(endings)}")
        check_writable(path)
        check_free(name, path, force)


def check_positive(name: str, value: float | None, of: str = "") -> None:
    """Raise unless an option is a positive number or left out."""
    if value is not None and not 0 < value < math.inf:
        raise ValueError(f"{name} must be a positive number{of}; got {value:g}")


def check_not_the_table(table: "Table", name: str, path: Path | None) -> None:
    """Raise if the file to write is the table itself."""
    if path is not None and path.exists() and path.samefile(table.path):
        raise ValueError(f"{name} {path} would overwrite the table; give another name")


def check_output(table: "Table", output: Path, names: list[str], force: bool) -> None:
    """Raise unless the table can be written to this file with new columns of these names."""
    from gzkcore.rows.files import ending

    check_writable(output)
    if output.suffix.lower() not in table.outputs:
        raise ValueError(
            f"--output {output} must end with {' or '.join(table.outputs)} for a "
            f"{ending(table.path) or table.path.suffix} file"
        )
    check_not_the_table(table, "--output", output)
    for name in names:
        if name in table.names:
            raise ValueError(f"{table.path} has a column {name!r} already; choose a --name")
    check_free("--output", output, force)
