"""The rows of a table that `gzkcore fit` learns from, and those held out."""

import functools
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gzkcore._util.typing import Doubles, Integers, OnProgress
from gzkcore._util.wording import counted
from gzkcore.learn.held_out import FEW_TO_TEST, FOLDS, copies_of, hashed_rows, last_rows
from gzkcore.rows.dates import date_told, seconds_of_array
from gzkcore.rows.degrees import AXES
from gzkcore.rows.files import Table
from gzkcore.rows.frames import (
    Frame,
    FrameSample,
    kind_of,
    read_frame,
    typed,
)
from gzkcore.rows.index import is_comment
from gzkcore.rows.text import DATE, NUMBER, TEXT
from gzkcore.rows.values import LARGEST_WHOLE, Values, missing_of
from gzkcore.sphere.globe import from_west, widest_gap
from gzkcore.tabular.columns.category import doubt_of_texts
from gzkcore.tabular.columns.cells import FEW_LEVELS, Cells, cells_of
from gzkcore.tabular.columns.kinds import KINDS
from gzkcore.tabular.columns.left_out import reason_of
from gzkcore.tabular.targets import IDENTIFIER, repeating

from .arguments import TestBy, listed
from .held_out import (
    FEWEST_ROWS,
    SHARE,
    check_known,
    check_rows,
    check_shares,
    check_targets_differ,
    folds_held_out,
    gaps_held_out,
    groups_held_out,
    length_of,
)
from .hints import (
    about_blocks,
    about_groups,
    about_numbered_labels,
    about_row_numbers,
    about_single_rows,
    about_spellings,
    doubtful_texts,
    numbering_columns,
)
from .inputs import Inputs
from .output import Say

LARGEST_TARGET, LEAST_SPREAD = 1e75, 1e-75  # Fourth powers of targets must be doubles.
LITTLE = "one says little about others, and a larger --test-fraction holds out more"
FAR_MORE = 1.5  # It is told if so many times the share that was asked for is held out.
# Why columns are left out before a learner sees them, by the reasons of `LeftOut`.
LEFT_OUT = {
    "empty": "they have no value",
    "index": "they have no name and hardly a value (--keep {} takes them back)",
    "names": "more than half of their texts differ (--as NAME=category keeps one)",
}
NO_KINDS: Mapping[str, Any] = {}  # that a user has chosen
GAP = 180.0  # degrees without data, from which on longitudes begin elsewhere


@dataclass(frozen=True)
class FrameRows:
    """Rows to fit to and rows held out, as a learner takes them.

    Where each fifth is held out in turn, both are all rows.
    """

    target: str
    inputs: Inputs
    classify: bool  # whether targets are labels
    train: Frame
    y: Values
    test: Frame
    truth: Values  # of the test
    by: TestBy = TestBy()  # noqa: RUF009  it can't be changed
    folds: Integers | None = None  # in which each row is held out, None if some are once
    groups: Integers | None = None  # of the rows of the fit, which are not divided
    weight: Doubles | None = None  # of the rows of the fit
    source: "TableSource | None" = None  # all rows of the fit, of which `train` are some at random
    missing: list[str] = field(default_factory=list)  # words for a missing value
    chosen: dict[str, Any] = field(default_factory=dict)  # kinds of columns, see `TableEncoder`

    @functools.cached_property
    def rarer(self) -> Any:
        """Of two labels that of fewer rows, of as many the second; else None."""
        labels, counts = np.unique(self.y, return_counts=True)
        two = self.classify and len(labels) == 2
        return labels[int(counts[1] <= counts[0])].item() if two else None


@dataclass
class TableSource:
    """The rows of the fit of a table that is read in passes: (frame, y), batch by batch, anew.

    The table determined by its sampled rows what its columns hold; a value of another kind is an
    error that names its row.
    """

    table: Table
    target: str
    inputs: Inputs
    target_kind: str
    classify: bool
    drop_missing: bool
    test_fraction: float
    seed: int
    weights: str | None = None  # the column of these
    n_rows: int = 0  # that the last pass has read

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        target, table = self.target, self.table
        kinds = self.inputs.kinds | {target: self.target_kind}
        if self.weights:
            kinds[self.weights] = NUMBER
        n_rows = 0
        for first, columns, _ in table.columns([*kinds]):
            values = {
                name: typed(table, name, columns[name], kind, first) for name, kind in kinds.items()
            }
            rows = np.arange(first, first + len(values[target]))
            used = ~hashed_rows(rows, self.test_fraction, self.seed)
            for name in kinds if self.drop_missing else [target]:
                used &= ~missing_of(values[name])
            values = {name: column[used] for name, column in values.items()}
            n_rows += int(used.sum())
            y = values.pop(target)
            if self.classify:
                y = _as_labels(table, target, y)
            frame, rows = self.inputs.frame(table, rows[used], values), rows[used]
            more = [self.weights] if self.weights else []
            yield frame, y, *(_weights(table, name, values[name], rows) for name in more)
        self.n_rows = n_rows


def read_rows(
    table: Table, target: str, columns: list[str], *, places: bool, classify: bool,
    test_fraction: float | None, drop_missing: bool, seed: int, report: OnProgress, say: Say,
    most_bytes: float | None = None, by: TestBy = TestBy(),  # noqa: B008  it can't be changed
    weights: str | None = None, regress: bool = False, kinds: Mapping[str, Any] = NO_KINDS,
) -> FrameRows:  # fmt: skip
    """Read a table, or as many rows at random as fit into memory; hold out some.

    `places` says whether the columns are latitude and longitude, `classify` whether numbers of the
    target are labels, `regress` whether text in it stands for missing numbers. Without
    `test_fraction` the share held out is `SHARE`, and of few rows each fifth in turn. `say` is told
    what was left out, and what else to know. `kinds` are those of columns that the user has chosen,
    see `TableEncoder`. The table may take `most_bytes` while it is learned
    from, by default what is available.
    """
    table.require(by.columns)
    table.of_numbers = target if regress else None
    more = [*by.columns, *([weights] if weights else [])]
    if places:
        kinds = dict(zip(columns, AXES, strict=True))
    table.axes = {name: kind for name, kind in kinds.items() if kind in [*AXES]}
    by_chance = by.at_random and test_fraction != 0
    unused = [name for name in table.beside(target) if by_chance and name not in [*columns, *more]]
    in_files = dict.fromkeys(filter(IDENTIFIER.fullmatch, unused), TEXT) | _kinds_in_files(kinds)
    names = [*dict.fromkeys([*columns, target, *more, *in_files])]
    table.padded |= {name for name, kind in in_files.items() if kind == NUMBER}
    table.padded |= {*filter(None, [weights, target if regress else None])}
    sample = read_frame(table, names, report, most_bytes, seed, in_files)
    whole, numbers, n_rows = sample
    n_read = len(whole)
    if n_read < n_rows:
        say(_about_drawn(table, n_read, n_rows, most_bytes, by))
    if drop_missing:
        whole, numbers = _complete(sample, [*columns, target], say)
    check_rows(table, len(whole), n_read - len(whole))
    asked, classify = classify, classify or kind_of(whole[target]) == TEXT
    y, there = _targets(table, target, whole[target], numbers, classify, say)
    if by_chance:
        others = {name: whole[name][there] for name in names if name not in (target, weights)}
        if repeated := repeating(others, [y[there]]):
            say(about_groups(repeated))
    if classify:
        _tell_labels(table, target, y[there], asked, say)
        if n_read == n_rows and (told := about_single_rows(target, y[there])):
            say(told)
    is_every = {*columns, by.groups, weights} >= {*table.beside(target)} - {*table.index}
    inputs, frame = _prepared(table, columns, whole, numbers, places, is_every, kinds, say)
    y, frame = y[there], frame.take(there)
    _check_size(table, target, y)
    held = {name: whole[name][there] for name in by.columns}
    weight = _weights(table, weights, whole[weights][there], numbers[there]) if weights else None
    known = FrameRows(
        target, inputs, classify, frame, y, frame, y, by, weight=weight,
        missing=sorted(table.reading.missing),
        chosen={name: kind for name, kind in kinds.items() if name in inputs.kinds},
    )  # fmt: skip
    if n_read < n_rows and by.at_random:
        share = SHARE if test_fraction is None else test_fraction
        source = TableSource(
            table, target, inputs, kind_of(whole[target]), classify, drop_missing, share, seed,
            weights,
        )  # fmt: skip
        test = hashed_rows(numbers[there], share, seed)
        return replace(_parted(known, table, by, test, share), source=source)
    return _divided(known, table, by, held, test_fraction, seed, say)


def _complete(sample: FrameSample, columns: list[str], say: Say) -> tuple[Frame, Integers]:
    """Return the rows that have a value in all of these columns, and their numbers."""
    there = ~np.any([missing_of(sample.frame[name]) for name in columns], axis=0)
    if lacking := int((~there).sum()):
        say(f"{counted(lacking, 'row')} with missing values left out")
    return sample.frame.take(there), sample.numbers[there]


def _about_drawn(
    table: Table, n_drawn: int, n_rows: int, most_bytes: float | None, by: TestBy
) -> str:
    """Say that so many rows fit into memory, and what is done; raise where these are too few."""
    drawn = f"{n_drawn:,} of {counted(n_rows, 'row')} of {table.path}"
    limit = "memory" if most_bytes is None else f"--memory, {most_bytes:,.0f} bytes"
    if n_drawn < FEWEST_ROWS:
        raise ValueError(
            f"{drawn} fit into {limit}, and a fit needs at least {FEWEST_ROWS}; allow more"
        )
    if not by.at_random:
        return (
            f"learned from {drawn}, drawn at random: as many as fit into {limit}; without "
            "--test-last, --test-groups and --test-gaps all rows are read, in passes"
        )
    return (
        f"{drawn} fit into {limit}, so the model is fitted to all of them in passes; these, drawn "
        "at random, say what columns hold and test it, and are all that the baselines learn from"
    )


def _divided(
    rows: FrameRows, table: Table, by: TestBy, held: dict[str, Values],
    test_fraction: float | None, seed: int, say: Say,
) -> FrameRows:  # fmt: skip
    """Return the rows of the fit and those held out, of rows that are both.

    `held` has the columns by which they are held out.
    """
    target, y = rows.target, rows.y
    groups = _groups(table, by.groups, held[by.groups]) if by.groups else None
    if by.gaps is None:
        rows = replace(rows, groups=groups)
    copies = _copies(rows.train, y) if by.at_random else None
    if copies is not None:
        say("many rows are copies of others, which are held out together with them")
    few = test_fraction is None and len(y) < FEW_TO_TEST
    once = by.last is not None or by.gaps is not None
    if few:
        check_known(table, target, len(y))
        _check_target(table, target, y)
        together = groups if copies is None else copies
        folds = None if once else folds_held_out(y, rows.classify, together, seed)
        if folds is not None:
            if groups is not None:
                n_groups = len(np.unique(groups))
                say(f"held out in turn: the {n_groups:,} values of {by.groups}, in {FOLDS} folds")
            return replace(rows, folds=folds)
    if test_fraction is None:
        test_fraction = 1 / FOLDS if few and once else SHARE
    if by.last is not None:
        test = _last_rows(table, by.last, held[by.last], test_fraction, say)
    elif by.gaps is not None:
        test = _gaps(table, by, rows, held, groups, test_fraction, seed, say)
    elif groups is not None:
        test = _whole_groups(str(by.groups), groups, test_fraction, seed, say)
    elif copies is not None:
        test = groups_held_out(copies, test_fraction, seed) & (test_fraction > 0)
    else:
        test = hashed_rows(np.arange(len(y)), test_fraction, seed)
    return _parted(rows, table, by, test, test_fraction)


def _parted(
    rows: FrameRows, table: Table, by: TestBy, test: NDArray[np.bool_], share: float
) -> FrameRows:
    """Return rows that are both of the fit and of the test without those of the other."""
    train = ~test
    check_shares(share, int(train.sum()), int(test.sum()), *by.columns[:1])
    _check_target(table, rows.target, rows.y[train])
    return replace(
        rows, train=rows.train.take(train), y=rows.y[train], test=rows.test.take(test),
        truth=rows.truth[test], groups=None if rows.groups is None else rows.groups[train],
        weight=None if rows.weight is None else rows.weight[train],
    )  # fmt: skip


def _copies(frame: Frame, y: Values) -> Integers | None:
    """Return numbers of rows, the same of copies; None where few rows have one."""

    def numbered(column: Values) -> Doubles:
        if column.dtype.kind in "OU":
            texts = np.array(["" if text is None else text for text in column])
            return np.unique(texts, return_inverse=True)[1].astype(np.float64)
        numbers = seconds_of_array(column) if column.dtype.kind == "M" else column
        return np.where(np.isnan(numbers), np.nanmedian(numbers), numbers)

    return copies_of(np.column_stack([*map(numbered, frame.values.values())]), numbered(y)[:, None])


def _weights(table: Table, name: str, column: Values, numbers: Integers) -> Doubles:
    """Return the weights of rows of these numbers, or raise where one is none."""
    if column.dtype.kind != "f":
        raise table.bad_type(name, "text" if column.dtype.kind == "O" else "dates")
    wrong = ~(column >= 0)
    if wrong.any():
        row = int(np.argmax(wrong))
        value = None if np.isnan(column[row]) else float(column[row])
        raise table.bad_value(int(numbers[row]), name, value, "weight >= 0")
    return column


def _groups(table: Table, name: str, column: Values) -> Integers:
    """Return the number of the group of each row; rows without a value are one group."""
    if column.dtype.kind == "O":
        column = np.array(["" if text is None else text for text in column])
    groups = np.asarray(np.unique(column, return_inverse=True)[1])
    if len(np.unique(groups)) == 1:
        raise ValueError(
            f"{table.path}: column {name!r} is the same in every row, so that there is one group; "
            "name another with --test-groups"
        )
    return groups


def _last_rows(
    table: Table, name: str, column: Values, share: float, say: Say
) -> NDArray[np.bool_]:
    """Say which rows have the last values of a column, and tell from which value on."""
    if column.dtype.kind == "O":
        raise ValueError(
            f"{table.path}: column {name!r} has text, which has no last value; name a column of "
            "dates or numbers with --test-last, or hold out groups, --test-groups"
        )
    known = column[~missing_of(column)]
    if not len(known) or known.min() == known.max():
        what = "has one value only" if len(known) else "has no value"
        raise ValueError(
            f"{table.path}: column {name!r} {what}, so that none are the last; "
            "name another with --test-last"
        )
    test = last_rows(column, share)
    start = column[test].min()
    if column.dtype.kind == "f":
        first = f"{start:.0f}" if start == round(start) else f"{start:.6g}"
    else:
        first = date_told(start)
    unknown = len(column) - len(known)
    more = f"; {counted(unknown, 'row')} without {name} are learned from" if unknown else ""
    far_more = _if_far_more(test, share, f"rows of the same {name}")
    say(f"held out: {counted(int(test.sum()), 'row')} with {name} from {first} on{far_more}{more}")
    return test


def _gaps(
    table: Table, by: TestBy, rows: FrameRows, held: dict[str, Values], groups: Integers | None,
    share: float, seed: int, say: Say,
) -> NDArray[np.bool_]:  # fmt: skip
    """Say which rows are in gaps that are made, and tell how many these are."""
    name, _, length = str(by.gaps).rpartition("=")
    dates = [column for column, kind in rows.inputs.kinds.items() if kind == DATE]
    names, values = [name] if name else dates, rows.train.values | held
    if len(names) != 1 or values[names[0]].dtype.kind != "M":
        none = f"; column {name!r} holds none" if name else ""
        raise ValueError(
            f"--test-gaps needs one column of dates, and those of {table.path} that predict are "
            f"{listed(dates) or 'none'}{none}; name one and a length such as week or 6h, "
            "--test-gaps COLUMN=week"
        )
    size, told = length_of(length)
    seconds = seconds_of_array(values[names[0]])
    test, n_gaps = gaps_held_out(seconds, size, groups, share, seed)
    if not n_gaps:
        raise ValueError(
            f"--test-gaps {length}: column {names[0]!r} of {table.path} has no three stretches "
            "of this length; name a shorter one"
        )
    of = f" of single values of {by.groups}" if by.groups else ""
    more = _if_far_more(test, share, "rows of a gap") + f"; {LITTLE}" * (n_gaps == 1)
    where = f"{counted(n_gaps, 'gap')} in {names[0]}{of}, each a stretch of {told}"
    say(f"held out: {counted(int(test.sum()), 'row')} in {where}{more}")
    return test


def _if_far_more(test: NDArray[np.bool_], share: float, those: str) -> str:
    """Say so where far more rows are held out than asked, since those stay together; else ""."""
    held = float(test.mean())
    if held <= FAR_MORE * share:
        return ""
    return (
        f", {100 * held:.0f} % of all instead of {100 * share:.3g} %, since {those} stay together"
    )


def _whole_groups(
    name: str, groups: Integers, share: float, seed: int, say: Say
) -> NDArray[np.bool_]:
    """Say which rows are of groups that are held out, and tell how many groups these are."""
    test = groups_held_out(groups, share, seed)
    n_held, n_groups = len(np.unique(groups[test])), len(np.unique(groups))
    far_more = _if_far_more(test, share, "groups")
    groups_held = f"{n_held:,} of {n_groups:,} values of {name}, {counted(int(test.sum()), 'row')}"
    say(f"held out: {groups_held}{far_more}{f'; {LITTLE}' * (n_held == 1)}")
    return test


def _prepared(
    table: Table, columns: list[str], whole: Frame, numbers: Integers, places: bool,
    is_every: bool, chosen: Mapping[str, Any], say: Say,
) -> tuple[Inputs, Frame]:  # fmt: skip
    """Return the columns that the model is given, and as a frame; tell what is left out."""
    kinds = {name: kind_of(whole[name]) for name in columns}
    if places:
        for name, kind in kinds.items():
            if kind != NUMBER:
                raise table.bad_type(name, "dates")
        longitudes = whole[columns[1]][np.isfinite(whole[columns[1]])]
        start, end = widest_gap(longitudes) if longitudes.size else (0.0, 0.0)
        # At the date line, unless it cuts the data apart.
        west = from_west((start + end) / 2) if end - start >= GAP else -180.0
        inputs = Inputs(kinds, west)
        return inputs, inputs.frame(table, numbers, whole.values)
    cells, _ = cells_of(Frame({name: whole[name] for name in columns}))
    reasons = {}
    for column in cells:
        choice = chosen.get(column.name, "")
        column.chosen = choice if isinstance(choice, str) else "category"
        is_none = column.name in table.doubtful and is_comment(column.name, column.values)
        reasons[column.name] = "index" if is_none else reason_of(column)
        if kinds[column.name] == TEXT and not (is_none or column.chosen):
            _tell_texts(column, whole[column.name], say)
    for reason, why in LEFT_OUT.items():
        if names := [name for name in columns if reasons[name] == reason]:
            say(f"left out, since {why.format(shlex.quote(listed(names)))}: {listed(names)}")
    used = [name for name in columns if reasons[name] not in LEFT_OUT]
    if is_every:  # who names them knows them
        named = [name for name in used if kinds[name] == NUMBER]
        values = np.column_stack([np.empty((len(whole), 0)), *(whole[name] for name in named)])
        ends = values.min(axis=0), values.max(axis=0)
        ranges = numbering_columns(named, numbers, values, len(whole), ends)
        if ranges and (told := about_row_numbers(ranges, used)):
            say(told)
    if not used:
        raise ValueError(
            f"{table.path}: every column is empty, or holds text with a different value in more "
            "than half of the rows, so that there is nothing to predict from; choose other "
            "columns, or name the form of dates by --date-format"
        )
    inputs = Inputs({name: kinds[name] for name in used})
    return inputs, inputs.frame(table, numbers, whole.values)


def _tell_texts(cells: Cells, texts: Values, say: Say) -> None:
    """Tell what is doubtful in a column of text."""
    levels = [text for text in cells.levels[0] if text]
    done = "left out" if cells.only_tells_rows_apart() else "taken for categories"
    remarks = [
        about_spellings(cells.name, levels if len(levels) <= FEW_LEVELS else []),
        about_blocks(cells.name, texts),
        str(doubt_of_texts(cells, done) or ""),
    ]
    for line in filter(None, remarks):
        say(line)


def _kinds_in_files(chosen: Mapping[str, Any]) -> dict[str, str]:
    """Return what files must hold for the kinds of columns that are chosen."""
    in_files = {choice: kind.IN_FILES for kind in KINDS for choice in kind.CHOICES}
    return {
        name: in_files[choice] if isinstance(choice, str) else TEXT
        for name, choice in chosen.items()
        if choice != "drop"
    }


def _targets(
    table: Table, target: str, column: Values, numbers: Integers, classify: bool, say: Say
) -> tuple[Values, NDArray[np.bool_]]:
    """Return targets, labels as text or whole numbers where they are, and which are there."""
    if column.dtype.kind == "M":
        raise ValueError(
            f"{table.path}: column {target!r} holds dates, which can't be predicted; choose "
            "another target"
        )
    text = column.dtype.kind == "O"
    there = ~missing_of(column)
    if not there.any():
        what, remedy = "value", "choose another target"
        if table.of_numbers == target:
            what, remedy = "number", f"if it holds text, leave out --regress, or {remedy}"
        raise ValueError(f"{table.path}: column {target!r} has no {what} in any row; {remedy}")
    if missing := int((~there).sum()):
        has, word = "has" if missing == 1 else "have", table.words.get(target)
        more = f" ({word!r} means none; --missing '' makes it a value)" if word else ""
        first = numbers[~there][0] + 1
        rows = f"{counted(missing, 'row')} {has} no value of {target}, data row {first} first"
        say(f"{rows}{more}; left out")
    if text or classify:
        return _as_labels(table, target, np.where(there, column, "" if text else 0)), there
    if told := about_numbered_labels(target, column[there]):
        say(told)
    return column, there


def _tell_labels(table: Table, target: str, y: Values, asked: bool, say: Say) -> None:
    """Tell what is doubtful in labels, which were asked for or are text."""
    if not asked and (doubt := doubtful_texts(y)):
        _check_target(table, target, y)
        say(f"column {target!r}, the target, is taken for labels: its {doubt}")
    if told := about_spellings(target, np.unique(y.astype(str)).tolist()):
        say(told)


def _as_labels(table: Table, target: str, y: Values) -> Values:
    if y.dtype.kind == "O":
        return y.astype(str)
    if not np.all(y == np.round(y)):
        raise ValueError(
            f"--classify: column {target!r} of {table.path} has fractional numbers, "
            "which can't be labels; leave --classify out"
        )
    if np.abs(y).max(initial=0) >= LARGEST_WHOLE:
        raise ValueError(
            f"--classify: column {target!r} of {table.path} has numbers beyond 2^53, which "
            "can't be told apart; put a letter before them, so that they are text"
        )
    return y.astype(np.int64)


def _check_size(table: Table, target: str, y: Values) -> None:
    """Raise ValueError for numbers whose errors are too large, or too small, to compute with."""
    if y.dtype.kind != "f":
        return
    largest, spread = float(np.abs(y).max()), float(np.ptp(y))
    if largest > LARGEST_TARGET or 0 < spread < LEAST_SPREAD:
        what = f"numbers up to {largest:.3g}, which are too large"
        if largest <= LARGEST_TARGET:
            what = f"numbers that differ by {spread:.3g} at most, which is too little"
        raise ValueError(
            f"{table.path}: column {target!r} has {what} to compute with; use another unit"
        )


def _check_target(table: Table, target: str, y: Values) -> None:
    values = np.unique(y)
    check_targets_differ(table, target, values[0], values[-1])
    if y.dtype.kind != "f" and len(values) > len(y) / 2:
        if doubt := doubtful_texts(y):
            raise ValueError(f"{table.path}: column {target!r} has text, no numbers: its {doubt}")
        raise ValueError(
            f"{table.path}: column {target!r} has {len(values):,} different labels in "
            f"{len(y):,} rows, too many to learn; choose another target"
        )
