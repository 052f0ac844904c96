"""The papers' tables and figures: the printed numbers, the rule of verdicts, and tiny runs of each."""

import json
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from trees import ROOT

from gzkcore import Gaussian, RandomFourierFeatures, metrics

if not (ROOT / "asv_bench" / "papers").is_dir():
    pytest.skip("there are no benchmarks here", allow_module_level=True)
sys.path.append(str(ROOT / "asv_bench"))

from papers import __main__ as cli
from papers import block as of_block
from papers import data, printed
from papers import gegenbauer as of_gegenbauer
from papers import reproduce as papers
from papers.experiment import Cell, Job, Setup


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A folder with a small set for each of the papers', as their loaders return them."""
    monkeypatch.setenv("GZKCORE_DATA", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    lat, lon = np.degrees(np.arcsin(rng.uniform(-1, 1, 120))), rng.uniform(-180, 180, 120)
    place = {"lat": lat, "lon": lon}
    months = {"month": np.arange(1, 13)}
    wave = np.sin(np.radians(lat))
    X = rng.standard_normal((240, 9))
    wide = np.cumsum(rng.standard_normal((30, 2500)), axis=1)
    sets = {
        "elevation": place | {"elevation_m": 1000 * wave},
        "co2": place | months | {"emission": np.outer(np.arange(12), wave)},
        "climate": place | months | {"temp_c": np.outer(np.arange(12), wave)},
        "protein": {"X": X, "y": X[:, 0] ** 2},
        "pendigits": {"X": rng.integers(0, 100, (90, 16)), "y": np.arange(90) % 3},
        "shuttle": {"X": X, "y": np.arange(240) % 2},
        "cifar-10": {
            "X_train": rng.integers(0, 255, (60, 48)), "y_train": np.arange(60) % 3,
            "X_test": rng.integers(0, 255, (30, 48)), "y_test": np.arange(30) % 3,
        },
        "census": {"X": np.tile(X, (80, 1)), "y": np.tile(X[:, 0], 80)},
        "genes-bc-tcga": {"X": rng.standard_normal((30, 2500))},
        "natural-images": {"X": wide},
    }  # fmt: skip
    for name, arrays in sets.items():
        np.savez(tmp_path / f"{name}.npz", **arrays)
    return tmp_path


SMALL = {
    "gegenbauer table1": (of_gegenbauer.Table1, {}, {"widths": (4, 64), "settings": (("sphere, d = 3", 3, 1.0),)}),
    "gegenbauer table2": (of_gegenbauer.Table2, {"width": 24, "wide": 24, "share": 1}, {"on_sphere": ((3, 1), (4, 1)), "elsewhere": ((2, 1), (2, 2)), "sketched": (2, 3)}),
    "gegenbauer table3": (of_gegenbauer.Table3, {"width": 16, "starts": 1}, {}),
    "block table1": (of_block.Table1, {}, {"pairs": 3}),
    "block fig2": (of_block.Figure2, {}, {"widths": (20, 40), "rows": 20}),
    "block table2": (of_block.Table2, {}, {"quick_dims": (5_000,), "widths": (1000,), "rounds": 1}),
    "block table3": (of_block.Table3, {}, {"quick_dims": (5_000,), "widths": (1_000,), "rounds": 1}),
    "block table4": (of_block.Table4, {"rows": 60, "choosing": 60}, {}),
}  # fmt: skip


REGRESSION = "gegenbauer table2"  # has a test of its own


@pytest.fixture
def small(monkeypatch):
    """Let every experiment be tiny, and nothing be tried that other tests try."""
    monkeypatch.setattr(of_gegenbauer, "KernelFeatures", RandomFourierFeatures)
    for name, (cls, arguments, attributes) in SMALL.items():
        experiment = cls(**arguments)
        for key, value in attributes.items():
            monkeypatch.setattr(experiment, key, value, raising=False)
        monkeypatch.setitem(papers.EXPERIMENTS, name, experiment)


def row(result, **wanted):
    """Return the cells with these words."""
    return [c for c in result.cells if all(getattr(c, k) == v for k, v in wanted.items())]


# ---- the printed numbers


def test_printed_tables_are_whole():
    assert all(len(line) == len(printed.REGRESSION_SETS) for line in printed.REGRESSION.values())
    assert all(len(line) == len(printed.CLUSTER_SETS) for line in printed.CLUSTERS.values())
    assert list(printed.REGRESSION) == list(printed.CLUSTERS)
    assert all(len(line) == len(printed.PROJECTION_WIDTHS) for line in printed.PROJECTION.values())
    for pair in printed.FEATURES.values():
        assert [len(line) for line in pair] == [len(printed.FEATURE_WIDTHS)] * 2
    cells = [one for case in printed.SHAPIRO.values() for one in case.values()]
    assert [len(one) for one in cells] == [3] * 8
    assert printed.REGRESSION["Nystrom"][3] == (18.9, 2.85)
    assert printed.CLUSTERS["Gegenbauer"][-1] == 0.78
    assert printed.PROJECTION[260_000][-1] == 1226.6
    assert printed.FEATURES[260_000][0][-1] == 11716


def test_claims_that_the_tables_contradict():
    """G26: Nystrom is faster on Protein, and others are better; B26: Fastfood is once slower."""
    protein = {method: line[3] for method, line in printed.REGRESSION.items()}
    error, seconds = protein.pop("Gegenbauer")
    assert all(line[1] < seconds for line in protein.values())
    better = [method for method, line in protein.items() if line[0] < error]
    assert better == ["Nystrom", "Fourier", "FastFood"]
    assert printed.REGRESSION["Nystrom"][0][0] < printed.REGRESSION["Gegenbauer"][0][0]
    assert all(min(block) > 1 for block, _ in printed.FEATURES.values())
    slower = [speed for _, fastfood in printed.FEATURES.values() for speed in fastfood if speed < 1]
    assert slower == [printed.FEATURES[17_500][1][0]] == [0.6]


@pytest.mark.parametrize(("values", "less", "verdict"), [
    ((1.09,), True, "agrees"),
    ((0.8,), True, "better"),
    ((1.2,), True, "worse"),
    ((1.2,), False, "better"),
    ((1.2,), None, "higher"),
    ((0.8,), None, "lower"),
    ((1.0, 1.6), True, "agrees"),  # within its own spread
])  # fmt: skip
def test_verdict(values, less, verdict):
    assert Cell("r", "c", "m", values, 1.0, less).verdict == verdict


def test_verdict_of_what_cannot_be_compared():
    def verdict(*printed, **rest):
        return Cell("r", "c", "m", (3.0,), *printed, **rest).verdict

    assert verdict(1.0, judged=False, note="stand-in data") == "stand-in data"
    assert verdict(1.0, judged=False) == "not comparable"
    assert verdict() == ""
    assert verdict(judged=False, note="measured") == "measured"
    assert verdict(3.0, note="why") == "agrees; why"
    assert verdict(1.0, finding="as printed", note="why") == "as printed; why"
    assert verdict("a claim", finding="holds") == "holds"
    assert verdict("a claim", finding="holds", judged=False) == "not comparable"


def test_a_capped_search_says_so():
    """A width above the largest that was tried is no measurement."""
    cells = [
        Cell("sphere", "Fourier", "needed", values, note="capped", most=4096.0)
        for values in [(8192.0, 8192.0), (2048.0, 4096.0, 8192.0), (64.0, 64.0)]
    ]
    result = papers.Result("a", "b", False, 3, tuple(cells), {}, {}, (), ())
    shown = [line[4] for line in result.table()[1]]
    assert shown == ["more than 4,096", "3,072 in 2 seeds, more than 4,096 in 1", "64 ± 0"]
    numbers = [(cell["mean"], cell["capped"]) for cell in result.to_dict()["cells"]]
    assert numbers == [(None, 2), (None, 1), (64.0, 0)]
    assert "8,192" not in str(result)


def test_table_1_of_gegenbauer_is_capped():
    experiment, setup = of_gegenbauer.Table1(), Setup(quick=False, seeds=1, data=None)
    outcomes = {"sphere, d = 3 / Fourier / 0": {"width": 8192.0, "more": True}}
    (needed,) = experiment.cells(setup, outcomes)
    assert (needed.capped, needed.verdict) == (1, "capped")
    assert "up to 4,096" in " ".join(experiment.notes(setup))


# ---- each experiment


def test_figure_1_has_the_known_errors():
    result = papers.run("gegenbauer fig1")
    errors = {(c.row, c.column): c.mean for c in result.cells}
    known = {"Taylor": (1.2e-1, 6.1e-5, 3.6e-9), "d = 2": (3.7e-3, 5.9e-8, 1.08e-13), "d = 4": (1.3e-2, 3.6e-7, 9.16e-13), "d = 8": (3.1e-2, 1.7e-6, 7.17e-12), "d = 32": (7.9e-2, 1.6e-5, 2.40e-10)}  # fmt: skip
    tangent = {"Taylor": (0.39, 0.26, 0.21), "d = 2": (0.118, 0.058, 0.040), "d = 4": (0.209, 0.108, 0.075), "d = 8": (0.279, 0.153, 0.109), "d = 32": (0.357, 0.217, 0.166)}  # fmt: skip
    for kernel, table in (("Gaussian", known), ("Neural tangent", tangent)):
        for column, numbers in table.items():
            for degree, number in zip((5, 10, 15), numbers, strict=True):
                digits = 0.05 if number < 0.2 else 0.03
                assert errors[f"{kernel}, degree {degree}", column] == pytest.approx(
                    number, rel=digits
                )
    assert "best, by degree from 0" in str(result)


def test_seeds_are_those_of_the_cells():
    """Figure 1 draws nothing, whatever it is asked for."""
    result = papers.run("gegenbauer fig1", seeds=5)
    assert "standard deviation" not in str(result)
    assert result.to_dict()["seeds"] == 1


@pytest.mark.parametrize("name", [name for name in (*SMALL, "block fig1") if name != REGRESSION])
@pytest.mark.usefixtures("home", "small")
def test_tiny_run(name, tmp_path):
    result = papers.run(name, quick=True, seeds=2, output=tmp_path / "out.json")
    assert result.cells
    assert all(np.isfinite(cell.values).all() for cell in result.cells)
    concluded = [
        "agrees", "better", "worse", "higher", "lower", "below", "above", "printed", "holds",
    ]  # fmt: skip
    concluded += ["lighter", "light", "on par", "normal"]
    for cell in result.cells:
        assert cell.printed is None or cell.verdict == "quick"
        assert not [word for word in concluded if word in cell.verdict]
    text = str(result)
    assert result.title in text
    assert json.loads(json.dumps(result.to_dict()))["name"] == name
    for absent in result.absent:
        assert f"{absent}: absent, skipped" in text


@pytest.mark.weekly
@pytest.mark.usefixtures("home", "small")
def test_regression_has_every_method_and_ours(tmp_path):
    result = papers.run("gegenbauer table2", quick=True, seeds=1, output=tmp_path / "out.json")
    for name in printed.REGRESSION_SETS:
        methods = [c.column for c in row(result, row=name, measure="MSE")]
        assert methods[:7] == [*printed.REGRESSION, "ours, same kernel"]
        assert "ours, scale chosen" in methods
    assert row(result, row="Elevation", measure="time / Fourier's", column="Fourier")[0].mean == 1
    assert "the label is the file's first column" in str(result)


def test_absent_sets_are_skipped(tmp_path, monkeypatch):
    monkeypatch.delenv("GZKCORE_DATA", raising=False)
    result = papers.run("gegenbauer table2", data_home=tmp_path)
    assert result.cells == ()
    assert set(result.absent) == set(printed.REGRESSION_SETS)
    assert "Protein: absent, skipped (add --download" in str(result)
    assert "CO2: absent, skipped (its source asks who you are" in str(result)


def test_cut_sketch_is_the_cut_series():
    X = np.random.default_rng(0).standard_normal((6, 3)) / 3
    Z = of_gegenbauer.CutPolySketch(0.5, 40_001, degree=3).fit(X).transform(X)
    t, squares = X @ X.T, np.square(X).sum(axis=1) / 2
    series = (1 + t + t**2 / 2 + t**3 / 6) * np.exp(-squares[:, None] - squares)
    np.testing.assert_allclose(Z @ Z.T, series, atol=0.03)


def test_exact_cost_is_that_of_the_metric():
    X = np.random.default_rng(0).standard_normal((150, 3))
    labels = np.arange(150) % 4
    kernel = Gaussian(1.0)
    assert of_gegenbauer.exact_cost(kernel, X, labels) == pytest.approx(
        metrics.clustering_cost(kernel(X), labels)
    )


def test_mushroom_has_21_columns():
    X = np.tile(np.arange(1, 23), (4, 1)) * np.arange(4)[:, None]
    X[:, 15] = 7
    known = data.Known("m", data.Bunch(X=X, y=np.arange(4) % 2), True, "")
    rows, k = data.clusters(known)
    assert rows.shape == (4, 21)
    assert k == 2
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1)


def test_other_data_have_a_choice_of_their_own():
    """Of gamma, in one process: for rows ten times as large a hundredth."""
    rng = np.random.default_rng(0)
    X, table = rng.standard_normal((60, 3)), of_block.Table4(rows=60, choosing=60)
    y = X[:, 0] > 0
    first, second = (
        Setup(True, 1, SimpleNamespace(digest=lambda _, kept=kept: kept)) for kept in "ab"
    )
    gamma, C = table._choose(first, "ADULT", X, y)
    assert table._choose(second, "ADULT", 10 * X, y) == (pytest.approx(gamma / 100), C)
    assert table._choose(first, "ADULT", 10 * X, y) == (gamma, C)  # as it was chosen


# ---- going on from a file


class Broken:
    """Work that is interrupted once."""

    name, title, seeds, sets = "a b", "t", (1, 1), ()

    def __init__(self):
        self.calls = []

    def jobs(self, plan):
        for key in "xyz":
            yield Job(f"{key} / 0", lambda k=key: self.work(k))

    def work(self, key):
        self.calls.append(key)
        if self.calls == ["x", "y"]:
            raise KeyboardInterrupt
        return {"value": 1.0}

    def cells(self, plan, found):
        return [Cell(key, "c", "m", (one["value"],)) for key, one in found.items()]

    def notes(self, plan):
        return []

    def pictures(self, plan, found):
        return []


def test_interrupted_and_gone_on_with(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    broken = Broken()
    monkeypatch.setitem(papers.EXPERIMENTS, "a b", broken)
    assert cli.main(["a", "b"]) == 130
    assert "finished results are in papers.json; repeat the command" in capsys.readouterr().err
    assert list(
        json.loads((tmp_path / "papers.json").read_text())["experiments"]["a b"]["jobs"]
    ) == ["x / 0"]
    assert cli.main(["a", "b", "--json"]) == 0
    assert broken.calls == ["x", "y", "y", "z"]
    told = json.loads(capsys.readouterr().out)
    assert [cell["row"] for cell in told["experiments"][0]["cells"]] == ["x / 0", "y / 0", "z / 0"]


@pytest.mark.usefixtures("small")
def test_other_settings_are_refused(home, tmp_path):
    output = tmp_path / "out.json"
    papers.run("block table2", quick=True, seeds=1, output=output)
    with pytest.raises(ValueError, match=r"other settings: quick was True.*or delete the file"):
        papers.run("block table2", seeds=1, output=output)
    papers.run("gegenbauer table3", quick=True, seeds=1, output=output)
    np.savez(home / "pendigits.npz", X=np.arange(60.0).reshape(20, 3) % 7, y=np.arange(20) % 2)
    with pytest.raises(ValueError, match=r"data Pendigits was"):
        papers.run("gegenbauer table3", quick=True, seeds=1, output=output)


@pytest.mark.usefixtures("home", "small")
def test_two_runs_with_one_file_keep_what_both_have_done(tmp_path):
    output = tmp_path / "out.json"

    def meanwhile(_, share, __):
        if share == 0:
            papers.run("gegenbauer table3", quick=True, seeds=1, output=output)

    papers.run("block table2", quick=True, seeds=1, output=output, report=meanwhile)
    assert set(json.loads(output.read_text())["experiments"]) == {
        "block table2",
        "gegenbauer table3",
    }


def test_not_a_result(tmp_path):
    (tmp_path / "a.json").write_text('{"other": 1}')
    with pytest.raises(ValueError, match=r"is not a result of papers.*give another"):
        papers.run("gegenbauer fig1", output=tmp_path / "a.json")


# ---- the command


def test_choose():
    assert papers.choose("block", "table4") == ["block table4"]
    assert len(papers.choose("all")) == len(papers.EXPERIMENTS) == 10
    with pytest.raises(ValueError, match="no experiment 'block table9'; choose all, gegenbauer"):
        papers.choose("block", "table9")
    with pytest.raises(ValueError, match="no experiment 'nobody'"):
        papers.run("nobody")


@pytest.mark.slow
@pytest.mark.usefixtures("small")
def test_command(home, capsys):
    assert cli.main(["block", "fig2", "--quick", "--plot", "p.png"]) == 0
    out = capsys.readouterr().out
    assert "block fig2: Mean errors" in out
    assert "Results: papers-quick.json" in out
    assert (home / "p.png").stat().st_size > 10_000
    assert cli.main(["block", "table1", "--quick", "--plot", "q.svg", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["plots"] == {"block table1": "q.svg"}
    assert cli.main(["block", "table1", "--plot", "q.gif"]) == 2
    assert cli.main(["ridge"]) == 2


def test_without_data_there_is_no_picture(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("GZKCORE_DATA", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert cli.main(["block", "table4", "--quick", "--plot", "p.png"]) == 0
    assert "block table4 has no results, and so no picture" in capsys.readouterr().out
    assert not (tmp_path / "p.png").exists()


def test_existing_pictures_stay(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a-block-fig1.png").write_bytes(b"precious")
    assert cli.main(["block", "--plot", "a.png"]) == 2
    assert "a-block-fig1.png exists already" in capsys.readouterr().err
    assert (tmp_path / "a-block-fig1.png").read_bytes() == b"precious"
