"""Write the numbers of the pages anew, from the commands that print them.

    python docs/write_numbers.py                     those that take minutes
    python docs/write_numbers.py errors promises     these, which may take hours
    python docs/write_numbers.py errors --from FILE  from what the command printed with --json

Each name of COMMANDS is a command of asv_bench/tables.py and the tables of pages that it fills.
Where it printed a row and a column of such a table, the cell gets its number, with as many decimals
as the number there, or its word; other cells stay. In a row with a new number the least is bold, if
one was. A cell that was never measured is a ?. What changed is printed. tests/test_numbers.py
checks what other pages say of these tables.
"""

import argparse
import difflib
import json
import os
import re
import shlex
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
NUMBER = re.compile(r"[\d,]*\.?\d+")
# {a name on a page: what the command calls it}, where they differ
NAMES = {
    "forest": "random forest",
    "SVM": "support vectors",
    "network": "neural network",
    "exact GP": "exact process",
    "rows within, %": "within, %",
    "rows within 1.96 standard deviations, %": "within 1.96 std, %",
    "error on test rows": "error",
    "error of the candidate that is best there": "of the best candidate",
    "max abs(μ - 1)": "max |mu - 1|",
    "ε of Eq 1": "epsilon of Eq 1",
    "`GegenbauerFeatures`": "gzkcore, auto",
    "the same and its `missing_diagonal`": "the same and its missing_diagonal",
    "`KernelRidge`": "gzkcore.KernelRidge",
    "the same, float32": "gzkcore.KernelRidge, float32",
    "1,024 features of the kernel": "gzkcore, 1,024 features",
    "scikit-learn, `KernelRidge`": "sklearn KernelRidge",
    "scikit-learn, `GaussianProcessRegressor`": "sklearn GaussianProcessRegressor",
    "GPyTorch, `ExactGP`": "GPyTorch",
    "KeOps and SciPy's `cg`": "KeOps and scipy's cg",
    "error": "RMSE",
    "mean squared error, km²": "squared, km^2",
    "root mean squared error, m": "error, m",
    "`KernelRegressor`, defaults": "KernelRegressor, defaults",
    "`KernelRidge`, lengthscale and alpha given": "whole Matern-3/2",
    "RBFSampler, 1,024 features, and ridge, both tuned": "RBFSampler, 1,024",
}


@dataclass(frozen=True)
class Tables:
    """Tables of a page, one after another below a line that begins so, and their source."""

    page: str
    line: str
    title: str  # of the table that the command prints
    count: int = 1
    rows: str = "table"  # the printed column that names rows
    only: tuple[str, object] = ("", None)  # a printed column and its value, of the rows that count


ERRORS = [
    Tables("prediction", "Root mean squared error on the", "Prediction of numbers", 3),
    Tables("prediction", "With labels, the error rate", "Prediction of classes", 2),
    Tables("prediction", "Their logarithmic loss,", "Their logarithmic loss"),
    Tables("prediction", "Mean and standard deviation of the error:", "Prediction of numbers"),
    Tables("prediction", "With labels, error rates in %", "Prediction of classes"),
]
OTHERS = (
    "'boosting,LightGBM,XGBoost,CatBoost,random forest,support vectors,neural network,linear,xRFM,"
    "tuned boosting,exact process,SVGP,GPBoost,xGPR'"
)
SECONDS, MEGABYTES = "Seconds of fit and prediction", "Megabytes of fit and prediction"
COSTS = [
    Tables("prediction", "Seconds of fit and prediction together", SECONDS, 2),
    Tables("prediction", "Megabytes beyond what the process held, with", MEGABYTES, 2),
]
FORMS = "Rows and form"
LARGE = [
    Tables("prediction", "With all rows, root mean", "Prediction of numbers"),
    Tables("prediction", "With all rows, root mean", FORMS),
    Tables("prediction", "With all rows and labels,", "Prediction of classes"),
    Tables("prediction", "With all rows and labels,", FORMS),
    Tables("prediction", "With all rows, their logarithmic", "Their logarithmic loss"),
    Tables("prediction", "Processor seconds of the fit,", "Processor seconds of the fit"),
    Tables("prediction", "Processor seconds of the pred", "Processor seconds of the predictions"),
]
PROMISES = [Tables("prediction", "It makes two promises.", "What KernelRegressor says of itself")]
INTERVALS = [Tables("prediction", "Coverage of the 95 % intervals", "Intervals of KernelRegressor")]
EARTH, AIRPORTS = ("data", "elevation of the Earth"), ("data", "airports")
GLOBE = [
    Tables("speed", "| elevation of", "The globe, whole", 1, "model", EARTH),
    Tables("speed", "| airports, ", "The globe, whole", 1, "model", AIRPORTS),
]
PEERS = [
    Tables(
        "kernel_ridge", f"| {data}, {n:,} rows", "The whole kernel in other libraries", 1, "method",
        ("rows", n),
    )
    for data, n in (("kin40k", 4000), ("kin40k", 10_000), ("kin40k", 36_000), ("elevation", 58_320))
]  # fmt: skip
TANGENT = [Tables("kernels", "The gain (", "Neural tangent kernel", 1, "features", ("rows", 1000))]
# {name: (arguments of asv_bench/tables.py, whether they take hours, what they fill)}
COMMANDS = {
    "tangent": ("families tangent", False, TANGENT),
    "globe": ("whole globe", False, GLOBE),
    "peers": ("whole peers", False, PEERS),
    "promises": ("promises --splits 3", True, PROMISES),
    "intervals": ("intervals", True, INTERVALS),
    "errors": ("prediction --rows 2000 --splits 5 --learners gzkcore", True, ERRORS),
    "others": (f"prediction --rows 2000 --splits 5 --learners {OTHERS}", True, ERRORS),
    "large": ("prediction", True, LARGE),
    "costs": ("prediction --rows 2000 --splits 1", True, COSTS),
}
TIMED = {"globe", "peers", "costs"}  # whose numbers are seconds, too


def printed(text):
    """Return {title: rows} of the tables that a command printed as JSON."""
    decoder, found, text = json.JSONDecoder(), {}, text.strip()
    while text:
        table, end = decoder.raw_decode(text)
        found.setdefault(table["table"], []).extend(table["rows"])
        text = text[end:].lstrip()
    return found


def cells(line):
    """Return the cells of a line of a Markdown table."""
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def tables_below(lines, start, count=1):
    """Return, for so many tables below a line, the numbers of their lines, the header's first."""
    begin = next(i for i, line in enumerate(lines) if line.startswith(start))
    found, last = [], None
    for i in range(begin, len(lines)):
        if lines[i].startswith("|"):
            if last != i - 1:
                found.append([])
            found[-1].append(i)
            last = i
        if len(found) > count:
            break
    return found[:count]


def like(old, value):
    """Return numbers as text, with the decimals of those that stand there; or a word."""
    if not NUMBER.search(old):
        if isinstance(value, str):
            return value
        return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"
    found = re.findall(r"\d[\d.]*(?:e[+-]?\d+)?", str(value))
    if len(found) < len(NUMBER.findall(old)):
        raise ValueError(f"{value} was printed, which has fewer numbers than {old} on the page")
    new = iter(found)

    def written(match):
        decimals = len(match[0].partition(".")[2])
        text = f"{float(next(new)):,.{decimals}f}"
        return text[1:] if match[0].startswith(".") else text

    return NUMBER.sub(written, plain(old))


def plain(cell):
    """Return a cell that is not bold."""
    return cell.replace("**", "")


def mean_of(cell):
    """Return the first number of a cell, or infinity."""
    found = NUMBER.search(cell)
    return float(found[0].replace(",", "")) if found else float("inf")


def fill(lines, tables, rows):
    """Put the numbers of printed rows into the tables of a page; return the names of these rows."""
    key, value = tables.only
    named = {
        row[tables.rows]: {column: cell for column, cell in row.items() if cell != ""}
        for row in rows
        if row.get(key) == value
    }
    same = {}  # {name: [(number of the line, its cells)]}, of rows with this name in these tables
    for numbers in tables_below(lines, tables.line, tables.count):
        header = [NAMES.get(name, name) for name in cells(lines[numbers[0]])]
        for number in numbers[2:]:
            name, *old = cells(lines[number])
            printed_row = named.get(NAMES.get(name, name), {})
            new = [
                like(cell, printed_row[column]) if column in printed_row else plain(cell)
                for column, cell in zip(header[1:], old, strict=True)
            ]
            same.setdefault(name, []).append((number, old, new))
    for name, found in same.items():
        if all(list(map(plain, old)) == new for _, old, new in found):
            continue
        bold = any(cell != plain(cell) for _, old, _ in found for cell in old)
        least = min(mean_of(cell) for *_, new in found for cell in new)
        for number, _, new in found:
            row = [f"**{cell}**" if bold and mean_of(cell) == least else cell for cell in new]
            lines[number] = f"| {' | '.join([name, *row])} |"
    return [name for name in same if NAMES.get(name, name) in named]


def write(name, text):
    """Fill the tables of a command; print which rows it measured, and what changed."""
    found = printed(text)
    for tables in COMMANDS[name][2]:
        path = ROOT / "docs" / f"{tables.page}.md"
        old = path.read_text(encoding="utf-8").split("\n")
        new = list(old)
        rows = fill(new, tables, found.get(tables.title, []))
        print(f"{path.name}, {tables.title}: {', '.join(rows) or 'not measured'}")
        path.write_text("\n".join(new), encoding="utf-8")
        for line in difflib.unified_diff(old, new, path.name, path.name, lineterm="", n=0):
            print(line)


def main():
    """Run the commands, or read what they printed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", choices=[[], *COMMANDS], help="by default the quick")
    parser.add_argument("--from", dest="file", type=Path, help="what the command printed")
    options = parser.parse_args()
    quick = [name for name, (_, hours, _) in COMMANDS.items() if not hours]
    for name in options.names or quick:
        line = f"asv_bench/tables.py {COMMANDS[name][0]} --json"
        load = os.getloadavg()[0]
        if options.file:
            text = options.file.read_text(encoding="utf-8")
        elif name in TIMED and load > 0.5 * os.cpu_count():
            print(f"{name} left out: it measures seconds, and other programs run (load {load:.1f})")
            continue
        else:
            print(f"$ {line}", flush=True)
            begin = time.monotonic()
            command = [sys.executable, *shlex.split(line)]
            text = subprocess.check_output(command, cwd=ROOT, text=True)
            print(f"{name} took {time.monotonic() - begin:.0f} s", flush=True)
        write(name, text)


if __name__ == "__main__":
    main()
