"""The page of `gzkcore fit --report`: whole, alone, with all its parts."""

import re
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from browser import BROWSER, faults_of, needs_browser
from commands import QUICK, UNTESTED, files, refuse, run, write

pytest.importorskip("typer", reason="the extra `cli` is not installed")
pytest.importorskip("matplotlib", reason="the extra `cli` is not installed")
from gzkcore.cli import effects, page
from gzkcore.cli import main as cli

ALWAYS = [
    "Errors beside baselines",
    "Predicted against actual values",
    "Settings and command",
    "What the fit says",
]
INTERVALS, PROBABILITIES = "Calibration of intervals", "Calibration of probabilities"
EFFECTS = "Effect of each column, and residuals by column"


class Page(HTMLParser):
    """The headings, links and texts of a page; all elements end in the order in which they began."""

    def __init__(self, path):
        super().__init__()
        self.open, self.count, self.links, self.ids, self.texts = [], {}, [], set(), {}
        self.source = Path(path).read_text(encoding="utf-8")
        self.feed(self.source)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.count[tag] = self.count.get(tag, 0) + 1
        self.links += [value for name, value in attrs if name in {"href", "src", "xlink:href"}]
        self.ids |= {value for name, value in attrs if name == "id"}
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open:
            self.texts.setdefault(self.open[-1], []).append(data)


def check(path, parts):
    """Check what holds of every page, and that it has these parts; return it."""
    read = Page(path)
    assert read.texts["h2"] == [head for head in read.texts["h2"] if head in {*ALWAYS, *parts}]
    assert {*read.texts["h2"]} == {*ALWAYS, *parts}
    inside = [link.removeprefix("#") for link in read.links if not link.startswith("data:image/")]
    assert all(link.startswith(("#", "data:image/")) for link in read.links)
    assert {*inside} <= read.ids
    assert not re.search(r"https?:|//|@import|url\((?!#)", re.sub('base64,[^"]*', "", read.source))
    assert "prefers-color-scheme: dark" in read.source
    assert '<meta name="viewport" content="width=device-width' in read.source
    assert read.count["svg"] == read.source.count('role="img"') >= 2
    assert "#24303c" not in read.source.split("</style>")[1]  # ink would not be seen in the dark
    assert BROWSER is None or faults_of(path) == []
    return read


@pytest.mark.slow
def test_noise(capsys):
    """A model that predicts the mean has no lengthscales."""
    rng = np.random.default_rng(1)
    write("data.csv", {"text": rng.choice([*"xyz"], 60), "y": rng.normal(size=60)})
    result = run(capsys, "fit", "data.csv", "--target", "y", "--report", "fit.html")
    assert (result["kernel"], result["lengthscales"]) == (None, {})
    assert "KernelRegressor, the mean" in check("fit.html", [INTERVALS]).texts["dd"]
    rng = np.random.default_rng(3)
    write("data.csv", {"a": rng.normal(size=60), "y": rng.choice([*"pqr"], 60)})
    run(capsys, "fit", "data.csv", "--target", "y", "--report", "fit.html")
    learner = "KernelClassifier, the frequencies of the classes"
    assert learner in check("fit.html", [PROBABILITIES]).texts["dd"]


@pytest.mark.slow
def test_numbers(capsys, plain):
    """With text that is no markup, dates, and values that are missing."""
    names = np.array(["<b>", "a & b", "$x_{$"])
    text = names[np.arange(500) % 3]
    day = np.datetime64("2020-01-01") + np.arange(500)
    gaps = [str(value) if i % 9 else "" for i, value in enumerate(plain["b"])]
    write("data.csv", plain | {"b": gaps, "text": text, "day": day})
    arguments = ["data.csv", "--target", "y", *QUICK, "--report", "fit.html"]
    result = run(capsys, "fit", *arguments)
    assert (result["page"], files()) == ("fit.html", ["data.csv", "fit.html", "model.gzk"])
    read = check("fit.html", [INTERVALS, EFFECTS, "Which columns matter"])
    assert {*read.texts["h3"]} == {
        "a", "b", "c", "text", "day, trend", "day, day of the week",
    }  # fmt: skip
    assert {"<b>", "a & b", "$x_{$"} <= {*read.texts["text"]}
    assert read.texts["pre"] == [f"gzkcore fit {' '.join(arguments)} --force --json"]
    assert "boosting (scikit-learn)" in read.texts["td"]
    assert "--model model.gzk; --seed 0; --skip-lines 0" in read.texts["dd"]
    assert "".join(read.texts["text"]).count("Which columns matter") == 0  # the heading says it
    assert set(result["report"][:-1]) <= set(read.texts["p"])


@pytest.mark.slow
def test_places(capsys, globe):
    """A surface, its standard deviations and errors at places; other columns have effects."""
    write("data.csv", globe)
    arguments = ["--target", "y", *QUICK, "--report", "fit.html"]
    run(capsys, "fit", "data.csv", *arguments, "--lat", "lat", "--lon", "lon")
    read = check("fit.html", [INTERVALS, "Map"])
    assert any(text.startswith("Errors of 40 held-out rows") for text in read.texts["text"])
    assert any(text.startswith("Standard deviation of a new") for text in read.texts["text"])
    page = Path("fit.html").read_text(encoding="utf-8")
    widths = [float(each.split()[2]) for each in re.findall('"map" viewBox="([^"]+)"', page)]
    assert widths[0] > 1.8 * max(widths[1:])  # the largest picture, for wide windows
    write("data.csv", globe | {"z": np.random.default_rng(0).normal(size=400) + globe["y"]})
    run(capsys, "fit", "data.csv", *arguments)
    read = check("fit.html", [INTERVALS, "Map", EFFECTS, "Which columns matter"])
    assert read.texts["h3"] == ["z"]


@pytest.mark.slow
@pytest.mark.parametrize("shown", [[], ["--no-hatching"]])
def test_maps_are_hatched_if_nobody_says_no(capsys, globe, shown):
    write("data.csv", globe)
    places = ["--lat", "lat", "--lon", "lon", "--gamma", "5000"]  # a lengthscale of 64 km
    run(capsys, "fit", "data.csv", "--target", "y", *QUICK, *places, "--report", "fit.html", *shown)
    texts = Page("fit.html").texts["text"]
    assert any(text.startswith("dots: ") for text in texts)
    assert any("hatched:" in text for text in texts) == (not shown)


@pytest.mark.slow
def test_labels(capsys, plain):
    label = np.array(["low", "middle", "high"])[np.digitize(plain["y"], [-0.5, 0.5])]
    write("data.csv", {"a": plain["a"], "b": plain["b"], "label": label})
    run(capsys, "fit", "data.csv", "--target", "label", *QUICK, "--report", "fit.html")
    read = check("fit.html", [PROBABILITIES, EFFECTS, "Which columns matter"])
    assert "Right predictions against their probability" in " ".join(read.texts["text"])
    assert {"low", "middle", "high"} <= {*read.texts["text"]}
    assert read.texts["span"] == ["●"] * 3  # once, above the pictures of all columns


@pytest.mark.slow
def test_without_a_test_no_errors_are_shown(capsys, plain):
    write("data.csv", plain)
    run(capsys, "fit", "data.csv", "--target", "y", *QUICK, *UNTESTED, "--report", "fit.html")
    read = Page("fit.html")
    assert "No rows were held out, so that no errors are known." in read.texts["p"]
    assert INTERVALS not in read.texts["h2"]
    assert EFFECTS in read.texts["h2"]


@needs_browser
def test_a_page_can_be_read_on_a_telephone_and_on_a_broad_screen(capsys, plain):
    long = np.array(["a level with a long name", "another level", "z"])[np.arange(500) % 3]
    table = {f"a column with quite a long name {name}": plain[name] for name in "ab"}
    write("data.csv", table | {"text": long, "y": 1e6 * plain["y"]})
    run(capsys, "fit", "data.csv", "--target", "y", *QUICK, "--report", "fit.html")
    assert faults_of("fit.html") == []


@needs_browser
def test_a_browser_finds_what_cannot_be_read():
    small = '<svg viewBox="0 0 800 9"><text>a</text></svg>'
    script, broad = "<script>undefined_name</script>", '<p style="width: 900px">broad</p>'
    Path("fit.html").write_text(f"<body>{script}{broad}{small}</body>")
    *console, cut, letters, wide = faults_of("fit.html")
    assert all("undefined_name is not defined" in line for line in console)
    assert (len(console), cut, wide[:27]) == (
        2,
        "400: cut off: P broad",
        "400: the page is too wide: ",
    )
    assert letters.startswith("400: letters of 7.")


def test_names_of_pages(capsys, plain):
    write("data.csv", plain)
    reason = refuse(capsys, "fit", "data.csv", "--target", "y", "--report", "fit.pdf")
    assert reason == "--report fit.pdf must end with one of .html, .htm"
    Path("fit.html").write_text("before")
    reason = refuse(capsys, "fit", "data.csv", "--target", "y", "--report", "fit.html")
    assert reason.startswith("--report fit.html exists already")


@pytest.mark.slow
def test_a_page_that_fails_comes_after_the_results(capsys, monkeypatch, plain):
    write("data.csv", plain)
    monkeypatch.setattr(page, "as_svg", lambda _: 1 / 0)
    arguments = ["--target", "y", *QUICK, *UNTESTED, "--report", "fit.html"]
    assert cli.main(["fit", "data.csv", *arguments]) == 2
    out, err = capsys.readouterr()
    assert "Next: gzkcore predict model.gzk" in out
    assert err.startswith("gzkcore: --report fit.html: the page could not be drawn: division")
    assert files() == ["data.csv", "model.gzk"]


def test_the_band_of_an_effect_is_wide_where_another_column_changes_it():
    x, other = np.linspace(-1, 1, 5)[:, None], np.linspace(-1, 1, 11)
    low, mean, high = effects._curve((x + 100 * other).ravel(), 5)
    np.testing.assert_allclose([low, mean, high], [x[:, 0]] * 3, atol=1e-12)
    low, mean, high = effects._curve((x * other).ravel(), 5)
    np.testing.assert_allclose(mean, 0, atol=1e-12)
    np.testing.assert_allclose(high, -low, atol=1e-12)
    np.testing.assert_allclose(high, 0.8 * np.abs(x[:, 0]), atol=1e-12)


def test_effects_are_of_the_columns_that_matter_most(monkeypatch):
    """A column of a small share may be one of them."""
    shown = []
    monkeypatch.setattr(page, "effects_of", lambda _, name: shown.append(name) or [])
    monkeypatch.setattr(page, "MOST_COLUMNS", 2)
    shares, shuffled = {"a": 0.8, "b": 0.15, "c": 0.05, "none": 0.0}, {"c": 3.0, "a": 2.0, "b": 1.0}
    model = SimpleNamespace(encoder_=SimpleNamespace(columns_=[]))
    for verdict in (SimpleNamespace(shuffled=shuffled), None):
        fit = SimpleNamespace(importances=shares, verdict=verdict, places=None, model=model)
        fit.rows = SimpleNamespace(classify=False)
        assert page._effects(fit, lambda *_: None) == ""
    assert shown == ["c", "a", "a", "b"]
