"""Numbers of pages: they are written from what commands print, and what other pages say agrees."""

import importlib.util
import re
import subprocess
import sys

import pytest
from trees import ROOT, needs_checkout

pytestmark = needs_checkout


def text_of(name):
    return (ROOT / name).read_text(encoding="utf-8")


def one_line(name):
    return " ".join(text_of(name).split())


@pytest.fixture(scope="module")
def numbers():
    """docs/write_numbers.py as a module."""
    path = ROOT / "docs" / "write_numbers.py"
    spec = importlib.util.spec_from_file_location("write_numbers", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["write_numbers"] = module  # where dataclasses look
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def measured(numbers):
    """{title: {table: {learner: cell}}} of the first tables of errors in prediction.md."""
    lines, found = text_of("docs/prediction.md").splitlines(), {}
    for tables in numbers.ERRORS:
        rows = found.setdefault(tables.line, {})
        for place in numbers.tables_below(lines, tables.line, tables.count):
            header = numbers.cells(lines[place[0]])
            for line in place[2:]:
                name, *cells = numbers.cells(lines[line])
                rows.setdefault(name, {}).update(zip(header[1:], cells, strict=True))
    return list(found.values())


@pytest.fixture(scope="module")
def leads(numbers, measured):
    """A function of a table and a learner: by how much it is ahead, in points or per cent."""

    def lead(table, learner):
        for rows in measured[:2] + measured[3:]:
            if learner in rows.get(table, ()):
                theirs = numbers.mean_of(rows[table][learner])
                labels = table in measured[1]
                ours = numbers.mean_of(measured[labels][table]["gzkcore"])
                return ours - theirs if labels else 100 * (ours / theirs - 1)
        return None

    return lead


def near_best(numbers, rows):
    """Return {learner: on how many tables it is the best, or within 2 % of the best}."""
    counts = {learner: 0 for row in rows.values() for learner in row}
    for row in rows.values():
        least = min(map(numbers.mean_of, row.values()))
        for learner, cell in row.items():
            # Of means that round to 0 those are the best that are bold.
            near = numbers.mean_of(cell) <= 1.02 * least and (least > 0 or "**" in cell)
            counts[learner] += near
    return counts


# ---- writing


@pytest.mark.parametrize(
    ("old", "value", "new"),
    [
        ("0.341", 0.33649, "0.336"),
        (".34", 0.33649, ".34"),
        ("**15.3 ± 0.2**", "14.96 ± 4.21", "15.0 ± 4.2"),
        ("2,430", 12345.6, "12,346"),
        ("?", 23.2649, "23.3"),
        ("?", 1234.6, "1,235"),
        ("**?**", "0.0733", "0.0733"),
        ("whole", "near", "near"),
    ],
)
def test_a_number_keeps_the_form_of_the_one_it_replaces(numbers, old, value, new):
    assert numbers.like(old, value) == new


def test_cells_that_were_printed_are_filled_and_the_least_is_bold(numbers):
    page = """Errors of two tables:

| table | gzkcore | SVM |
|---|---|---|
| pol | **0.5** | 0.6 |
| bike | **0.2** | 0.3 |

| table | gzkcore | linear |
|---|---|---|
| pol | **0.5** | 0.9 |
"""
    lines = page.split("\n")
    rows = [{"table": "pol", "gzkcore": 0.7, "support vectors": 0.61}]
    numbers.fill(lines, numbers.Tables("", "Errors", "", 2), rows)
    new = page.replace("**0.5** | 0.6", "0.7 | **0.6**").replace("**0.5**", "0.7")
    assert "\n".join(lines) == new


def test_cells_that_were_never_measured_are_filled_and_words_stay_where_none_was_printed(numbers):
    lines = ["Errors:", "| table | gzkcore | SVM | form |", "|---|---|---|---|"]
    lines += ["| pol | **?** | ? | ? |", "| bike | **0.2** | ? | near |"]
    rows = [{"table": "pol", "gzkcore": "0.734", "support vectors": 0.61, "form": "centres"}]
    rows += [{"table": "bike", "support vectors": 0.1, "form": ""}]
    numbers.fill(lines, numbers.Tables("", "Errors", ""), rows)
    wanted = ["| pol | 0.734 | **0.61** | centres |", "| bike | 0.2 | **0.1** | near |"]
    assert lines[3:] == wanted


def test_the_command_without_rows_prints_the_tables_of_all_rows(numbers):
    program = [sys.executable, ROOT / "asv_bench" / "tables.py", "prediction", "--json", "--quick"]
    command = [*program, "--learners", "gzkcore", "stations", "breast cancer"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found = numbers.printed(done.stdout)
    assert {each.title for each in numbers.LARGE} <= found.keys()
    columns = {"Rows and form": {"table", "rows", "form"}}
    for title in {each.title for each in numbers.LARGE}:
        assert found[title][0].keys() == columns.get(title, {"table", "gzkcore"})
    assert found["Rows and form"][0] == {"table": "stations", "rows": 300, "form": "whole"}


def test_every_table_that_a_command_fills_is_there(numbers):
    for _, _, filled in numbers.COMMANDS.values():
        for tables in filled:
            lines = text_of(f"docs/{tables.page}.md").splitlines()
            found = numbers.tables_below(lines, tables.line, tables.count)
            assert [len(place) > 3 for place in found] == tables.count * [True]


# ---- what other pages say


def test_pages_count_the_tables_on_which_gzkcore_is_best(numbers, measured):
    counts = [near_best(numbers, rows)["gzkcore"] for rows in measured[:3]]
    of_numbers, of_labels, of_losses = counts
    both = f"on {of_numbers} of the 16 whose target is a number, and on {of_labels} of the 11 of labels"
    page = one_line("docs/prediction.md")
    assert both in one_line("README.md")
    assert f"on {of_numbers + of_labels} of the 27 tables" in page
    assert f"{both} (by the logarithmic loss on {of_losses})" in page
    assert f"| gzkcore | {of_numbers} of 16 tables |" in page
    assert f"gzkcore is best, or within 2 % of the best, on {of_labels} of the 11." in page
    catboost = near_best(numbers, measured[2])["CatBoost"]
    assert f"on {of_losses} of the 11; CatBoost on {catboost}." in page


@pytest.mark.parametrize(
    ("start", "which"), [("| learner | best, or", 0), ("| learner | best of these six", 3)]
)
def test_the_page_counts_the_tables_of_each_learner(numbers, measured, start, which):
    counts = near_best(numbers, measured[which])
    lines = text_of("docs/prediction.md").splitlines()
    (place,) = numbers.tables_below(lines, start)
    said = {}
    for line in place[2:]:
        learners, count = numbers.cells(lines[line])
        said |= dict.fromkeys(
            learners.split(", "), 0 if count == "none" else numbers.mean_of(count)
        )
    assert said == counts


def test_peers_counts_the_tables_on_which_each_library_is_best(numbers, measured):
    section = text_of("docs/peers.md").partition("### Defaults")[2].partition("###")[0]
    counts = [near_best(numbers, rows) for rows in measured[:2]]
    names = {
        "a forest": "forest",
        "an SVM": "SVM",
        "a network": "network",
        "a linear model": "linear",
    }
    names["scikit-learn's boosting"] = "boosting"
    rows = [numbers.cells(line) for line in section.splitlines() if line.startswith("|")][2:]
    assert len(rows) == len(counts[0])
    for name, *said in rows:
        found = [each.get(names.get(name, name), "not measured") for each in counts]
        assert said == [str(count or "none") for count in found]


def test_peers_says_how_many_labels_are_wrong(numbers, measured):
    for library, table in (("CatBoost", "adult"), ("LightGBM", "breast cancer")):
        theirs, ours = (numbers.mean_of(measured[1][table][x]) for x in (library, "gzkcore"))
        said = re.search(rf"\| {library} \| {table}.*", text_of("docs/peers.md"))[0]
        assert f"{theirs} % of labels wrong instead of {ours} %" in said


def test_the_readme_repeats_numbers_of_the_page(numbers, measured):
    lines = text_of("README.md").splitlines()
    (place,) = numbers.tables_below(lines, "| error on held-out rows")
    header = [name.replace("neural ", "") for name in numbers.cells(lines[place[0]])[1:]]
    for line in place[2:]:
        name, *cells = numbers.cells(lines[line])
        row = measured[0][name.partition(",")[0]]
        for learner, cell in zip(header, cells, strict=True):
            mean = row[learner].partition(" ±")[0]
            assert numbers.plain(cell) == numbers.plain(mean).removeprefix("0")
            assert ("**" in cell) == ("**" in mean)
    churn = measured[1]["churn"]
    said = re.search(
        r"CatBoost has ([\d.]+) % of labels wrong, gzkcore ([\d.]+) %", one_line("README.md")
    )
    assert list(map(float, said.groups())) == [
        numbers.mean_of(churn[x]) for x in ("CatBoost", "gzkcore")
    ]


def test_where_others_win_says_by_how_much(numbers, leads):
    section = text_of("docs/prediction.md").partition("## Where others win")[2].splitlines()
    (place,) = numbers.tables_below(section, "| table |")
    rows = [numbers.cells(section[line]) for line in place[2:]]
    checked = 0
    for table, who, by, _ in rows:
        ahead = leads(table, re.split("[,;]", who)[0])
        if ahead is not None:
            # Of numbers both means are rounded to three digits.
            tolerance = 0.06 if "points" in by else 0.5
            assert ahead == pytest.approx(numbers.mean_of(by), abs=tolerance), table
            checked += 1
    assert checked > 6


def test_where_others_win_says_by_how_much_with_all_rows(numbers):
    lines = text_of("docs/prediction.md").splitlines()
    errors = {}
    for tables in (numbers.LARGE[0], numbers.LARGE[2]):
        (place,) = numbers.tables_below(lines, tables.line)
        header = numbers.cells(lines[place[0]])
        rows = (dict(zip(header, numbers.cells(lines[line]), strict=True)) for line in place[2:])
        errors |= {f"{row['table']}, all rows": row for row in rows}
    (place,) = numbers.tables_below(lines, "| table | who is ahead")
    said = [numbers.cells(lines[line]) for line in place[2:]]
    of_all_rows = [row for row in said if row[0] in errors]
    assert of_all_rows
    for table, who, by, _ in of_all_rows:
        ours, theirs = (numbers.mean_of(errors[table][x]) for x in ("gzkcore", who.split(",")[0]))
        ahead = ours - theirs if "points" in by else 100 * (ours / theirs - 1)
        assert ahead == pytest.approx(numbers.mean_of(by), abs=0.06 if "points" in by else 0.5)


def test_what_is_said_of_seconds_is_in_their_tables(numbers):
    page, lines = one_line("docs/prediction.md"), text_of("docs/prediction.md").splitlines()
    seconds, kinds = {}, []
    for place in numbers.tables_below(lines, numbers.COSTS[0].line, 2):
        header = numbers.cells(lines[place[0]])[1:]
        rows = [numbers.cells(lines[line]) for line in place[2:]]
        found = {name: dict(zip(header, map(float, row), strict=True)) for name, *row in rows}
        kinds.append([row["gzkcore"] / row["boosting"] for row in found.values()])
        seconds |= found
    ours, boosting, catboost = (
        sum(row[learner] for row in seconds.values()) / len(seconds)
        for learner in ("gzkcore", "boosting", "CatBoost")
    )
    assert (
        f"takes {ours:.1f} s in the mean of the {len(seconds)} tables, boosting {boosting:.2f} s, CatBoost {catboost:.1f} s"
        in page
    )
    assert f"takes {ours:.1f} s in the mean, CatBoost {catboost:.1f} s" in page
    of_numbers, of_labels = ([min(kind), max(kind)] for kind in kinds)
    assert (
        "{:.0f} to {:.0f} times as fast on numbers and {:.0f} to {:.0f} times on labels".format(
            *of_numbers, *of_labels
        )
        in page
    )


def test_the_page_counts_the_better_intervals(numbers):
    lines = text_of("docs/prediction.md").splitlines()
    (place,) = numbers.tables_below(lines, numbers.INTERVALS[0].line)
    rows = [numbers.cells(lines[line]) for line in place[2:]]
    better = sum(float(ours) < float(boosting) for _, _, ours, boosting in rows)
    assert f"gzkcore's intervals are better on {better} of the {len(rows)}." in one_line(
        "docs/prediction.md"
    )


def test_the_readme_repeats_the_satellite(numbers):
    rows = [
        numbers.cells(line)
        for line in text_of("docs/peers.md").splitlines()
        if "defaults, mean of four" in line
    ]
    _, _, _, error, crps, score, *_ = numbers.cells(numbers.plain("|".join(rows[0])))
    assert f"have {error}, {crps} and {score} in the mean of four seeds" in one_line("README.md")


def test_the_first_page_repeats_numbers_of_kin40k(numbers, measured):
    row = measured[0]["kin40k"]
    ours, catboost, network = (numbers.mean_of(row[x]) for x in ("gzkcore", "CatBoost", "network"))
    page = one_line("docs/index.md")
    assert f"**{ours}**" in page
    assert f"[{catboost}](prediction.md), a neural network {network};" in page


def test_pages_repeat_the_gaussian_process_of_10000_rows(numbers):
    lines = text_of("docs/kernel_ridge.md").splitlines()
    (place,) = numbers.tables_below(lines, "| kin40k, 10,000 rows")
    rows = {name: cells for name, *cells in (numbers.cells(lines[line]) for line in place)}
    mine, theirs = rows["`KernelRidge`"], rows["GPyTorch, `ExactGP`"]
    other = rows["scikit-learn, `GaussianProcessRegressor`"]
    for name in ("README.md", "docs/peers.md"):
        for cells, library in ((mine, "gzkcore"), (other, "scikit-learn"), (theirs, "GPyTorch")):
            wanted = cells if name == "README.md" else cells[1:]
            assert f"| {library} | {' | '.join(wanted)} |" in numbers.plain(text_of(name))
    short = [f"{seconds} s, {megabytes} MB" for _, seconds, megabytes in (mine, other, theirs)]
    assert "| {} | scikit-learn {}; GPyTorch {} |".format(*short) in text_of("docs/speed.md")
    assert f"**{short[0]}**" in text_of("docs/index.md")
    assert (
        f"10,000 rows take {mine[1]} s, where GPyTorch's `ExactGP` takes {theirs[1]} s"
        in one_line("docs/from_gpytorch.md")
    )


def test_the_readme_repeats_errors_on_the_globe(numbers):
    lines, found = text_of("docs/speed.md").splitlines(), []
    for tables in numbers.GLOBE:
        (place,) = numbers.tables_below(lines, tables.line)
        found.append([numbers.cells(lines[line])[-2:] for line in (place[2], place[-1])])
    (place,) = numbers.tables_below(text_of("README.md").splitlines(), "| | 58,320 cells")
    rows = [numbers.cells(text_of("README.md").splitlines()[line]) for line in place[2:]]
    for row, earth, airports in zip(rows, *found, strict=True):
        means = [
            earth[0].partition(" ±")[0] + " m",
            earth[1],
            airports[0].partition(" ±")[0] + " m",
            airports[1],
        ]
        assert [numbers.plain(cell) for cell in row[1:]] == means
