"""What `gzkcore fit` makes of a clean table that was spoilt in two of the ways that people do."""

import contextlib
import io
import itertools
import json
import os
import re
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np
from printing import report, show

ALLOWED = 0.05  # R2 that a spoilt table may lose without a word
FORMS = ("%Y/%m/%d", "%d.%m.%Y", "%m/%d/%Y", "%d-%b-%Y", "%b %d, %Y", "%Y-%m-%d %H:%M:%S UTC",
         "%Y%m%d", "%a, %d %b %Y %H:%M:%S +0000", "%d/%m/%y", "%m/%d/%Y %I:%M %p")  # fmt: skip
WORDS = ("?", "-", "#N/A", "n/a", "broken", "see note", "-9999")


class Spoilt:
    """A table as text, and how it is written."""

    def __init__(self, rng, n_rows):
        self.rng, self.delimiter, self.decimal, self.space = rng, ",", ".", ""
        self.above, self.units, self.numbered, self.sep = [], False, False, False
        a, b = rng.uniform(0.2, 10, n_rows), 10 ** rng.uniform(2.5, 5.5, n_rows)
        day, kind = rng.integers(0, 1500, n_rows), rng.choice(["u", "v, w", "None"], n_rows)
        self.days = np.datetime64("2019-01-01") + day
        y = 3 * np.sin(a) + 2 * np.log10(b) + 2 * np.sin(2 * np.pi * day / 365.25) + (kind == "u")
        self.columns = {
            "a": [f"{value:.2f}" for value in a],
            "people": [f"{value:.0f}" for value in b],
            "when": [str(value) for value in self.days],
            "kind": list(kind),
            "y": [f"{value:.2f}" for value in y + 0.2 * rng.normal(size=n_rows)],
        }
        self.order = np.argsort(y)

    def some(self, name, words):
        """Write words in some rows of a column."""
        for row in self.rng.choice(len(self.order), self.rng.integers(1, 12), replace=False):
            self.columns[name][row] = self.rng.choice(words)

    def each(self, name, change):
        """Change each value of a column."""
        self.columns[name] = [change(value) for value in self.columns[name]]

    def text(self):
        """Return the text of the table."""
        names = list(self.columns)
        rows = list(zip(*self.columns.values(), strict=True))
        rows = [
            tuple(name.rstrip("\0") for name in names),
            *([("m", "", "", "", "kg")] * self.units),
            *rows,
        ]
        lines = []
        for number, row in enumerate(rows):
            values = [
                value.replace(".", self.decimal) if re.fullmatch(r"-?\d+\.\d\d", value) else value
                for value in row
            ]
            values = [
                f'"{value}"'
                if self.delimiter in value or (self.space and not value[:1].isdigit())
                else value
                for value in values
            ]
            start = [str(number)] if self.numbered and number else []
            lines.append((self.delimiter + self.space).join([*start, *values]))
        sep = [f"sep={self.delimiter}"] * self.sep
        return "\n".join([*sep, *self.above, *lines]) + "\n"


def _index(t):
    place = {int(row): str(number) for number, row in enumerate(t.order)}
    t.columns = {"Unnamed: 0": [place[row] for row in range(len(place))], **t.columns}


def _date(t):
    import pandas as pd

    form = str(t.rng.choice(FORMS))
    t.columns["when"] = pd.DatetimeIndex(t.days).strftime(form).tolist()


def _commas(t):
    t.delimiter, t.decimal = ";", ","


def _thousands(t):
    mark = t.rng.choice([",", ".", " ", "\u202f", "'"])
    t.each("people", lambda v: f"{int(v):,}".replace(",", mark) if v.isdigit() else v)


def _logger(t):
    t.above = ["Logger 7, Ulm", "2024-01-01", "", *t.above]


# How a table may be spoilt, and what a message has to name where that costs more than it may.
KINDS = {
    "index": (_index, "index"),
    "words in a": (lambda t: t.some("a", WORDS), "'a'|far from all"),
    "words in people": (lambda t: t.some("people", WORDS), "'people'|far from all"),
    "words in y": (lambda t: t.some("y", WORDS), r"'y'|no y|\by\b"),
    "unit": (lambda t: t.each("a", lambda v: v + t.unit), "'a'"),
    "units": (lambda t: t.each("a", lambda v: v + t.rng.choice([" kmpl", " km/kg"])), "'a'"),
    "currency": (lambda t: t.each("people", lambda v: "$" + v), "'people'"),
    "percent": (lambda t: t.each("y", lambda v: v + " %"), "'y'|y "),
    "dates": (_date, "'when'"),
    "thousands": (_thousands, "'people'"),
    "decimal commas": (_commas, "decimal comma"),
    "sep=": (lambda t: setattr(t, "sep", True), "sep="),
    "logger": (_logger, "--skip-lines"),
    "line of units": (lambda t: setattr(t, "units", True), "below the names|data row 1"),
    "spaces": (lambda t: setattr(t, "space", " "), "space"),
    "twice": (lambda t: t.columns.update({"a\0": [*t.columns["people"]]}), "'a.1'|called"),
    "row names": (lambda t: setattr(t, "numbered", True), "index"),
}


def corruptions(options):
    """Spoil a table in two ways at a time, and count what the command says of it.

    An error must name one of the ways, a note all those that cost as much alone.
    """
    os.environ["OMP_NUM_THREADS"] = "1"
    n_rows = 60 if options.quick else 240
    clean = _fitted(_spoilt(0, (), n_rows))[0]
    counts, failed = Counter(), []
    for seed in range(1, 3 if options.quick else options.tables + 1):
        rng = np.random.default_rng([seed, 0])
        pairs = list(itertools.combinations(KINDS, 2))
        names = pairs[rng.integers(len(pairs))][:: rng.choice([-1, 1])]
        r2, told = _fitted(_spoilt(seed, names, n_rows))
        if r2 is None:
            named = any(re.search(KINDS[name][1], told) for name in names)
            outcome = "an error that names the cause" if named else "AN ERROR WITHOUT A CAUSE"
        elif r2 >= clean - ALLOWED:
            outcome = f"R2 within {ALLOWED} of the clean table's"
        else:
            alone = {name: _fitted(_spoilt(seed, (name,), n_rows))[0] for name in names}
            costly = [name for name, r2 in alone.items() if r2 is None or r2 < clean - ALLOWED]
            named = all(re.search(KINDS[name][1], told) for name in costly or names)
            outcome = "a note that names the cause" if named else "A WORSE R2 WITHOUT A WORD"
        counts[outcome] += 1
        failed += [f"{seed} {names} {r2} {told}"] * outcome.isupper()
        report(f"{seed} {outcome}: {', '.join(names)} {r2} {told}")
    rows = [
        {"outcome": name, "share": f"{100 * number / counts.total():.1f} %"}
        for name, number in counts.most_common()
    ]
    show("Tables spoilt in two ways", rows, f"R2 of the clean table: {clean:.3f}.", options)
    if failed:
        raise SystemExit("\n".join(failed))


def _spoilt(seed, names, n_rows):
    """Return the text of the table, spoilt in these ways."""
    table = Spoilt(np.random.default_rng(0), n_rows)
    for name in names:
        table.rng = np.random.default_rng([seed, [*KINDS].index(name)])
        table.unit = table.rng.choice([" kmpl", "cm", " °C", "k"])
        KINDS[name][0](table)
    return table.text()


def _fitted(text):
    """Return the R2 that `gzkcore fit` finds, None where it refuses, and all that it says."""
    from gzkcore.cli import main as cli

    out, err = io.StringIO(), io.StringIO()
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        Path("table.csv").write_text(text, encoding="utf-8")
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = cli.main(["fit", "table.csv", "--target", "y", "--json", "--kernel", "gaussian",
                             "--whole", "--test-fraction", "0.3"])  # fmt: skip
    if code:
        return None, err.getvalue()
    found = json.loads(out.getvalue())
    return found["methods"][0].get("r2", -1.0), "\n".join(found["notes"])
