"""The command fit with the whole kernel: as with features, what it prints, writes and refuses."""

import re
import signal
import time
from pathlib import Path

import numpy as np
import pytest
from commands import files, read, refuse, run, start, write
from sklearn.kernel_ridge import KernelRidge as SklearnKernelRidge

from gzkcore import KernelRidge
from gzkcore._util.model_io import load
from gzkcore.cli import fit_whole as module
from gzkcore.cli import main as cli
from gzkcore.cli.held_out import held_out
from gzkcore.datasets import LatLonToSphere
from gzkcore.rows import files as tables
from gzkcore.solve import kernel_system

pytest.importorskip("typer", reason="the extra `cli` is not installed")

ON_GLOBE = ["--target", "y", "--lat", "lat", "--lon", "lon", "--whole"]


@pytest.mark.slow
def test_on_the_globe(capsys, globe):
    write("data.csv", globe)
    result = run(capsys, "fit", "data.csv", *ON_GLOBE, "--plot", "map.png")
    assert result["whole"]
    assert result["n_components"] is None
    assert result["test"]["r2"] > 0.99
    assert result["gamma_from"] == "auto"
    assert result["kernel"].startswith("Matern(length_scale=")
    assert 0 <= result["residual"] <= 1e-3
    assert result["n_iter"] >= 1
    assert result["preconditioner"]
    assert files() == ["data.csv", "map.png", "model.gzk"]

    assert cli.main(["fit", "data.csv", *ON_GLOBE, "--force"]) == 0
    out = capsys.readouterr().out
    assert re.search(r"kernel +Matern\(.*, whole", out)
    assert re.search(r"lengthscale +[0-9,]+ km", out)
    assert re.search(r"alpha +[0-9.e-]+, chosen by held-out rows", out)
    assert "to a relative residual of" in out
    assert "gzkcore predict model.gzk NEW.csv" in out


@pytest.mark.slow
def test_it_is_kernel_ridge_on_the_rows_of_the_fit(capsys, plain):
    write("data.csv", plain)
    result = run(capsys, "fit", "data.csv", "--target", "y", "--whole", "--plot", "pairs.png")
    run(capsys, "predict", "model.gzk", "data.csv", "--output", "out.csv", "--std")
    model, train = load("model.gzk"), ~held_out(np.arange(500), 0.1, 0)
    X, y = np.column_stack([plain[name] for name in "abc"]), plain["y"]
    X = (X - X[train].mean(axis=0)) / X[train].std(axis=0)
    length = 1 / np.sqrt(2 * result["gamma"])
    assert model.kernel_.length_scale == pytest.approx(length)

    def matern(a, b):
        z = np.sqrt(3) * np.linalg.norm(a - b) / length
        return (1 + z) * np.exp(-z)

    expected = SklearnKernelRidge(kernel=matern, alpha=result["alpha"])
    constant = float(model.intercept_)
    expected.fit(X[train], y[train] - constant)
    predicted = np.array([float(row["PREDICTED_y"]) for row in read("out.csv")])
    spread = y.std()
    np.testing.assert_allclose(predicted, expected.predict(X) + constant, atol=1e-3 * spread)
    assert result["test"]["rmse"] == pytest.approx(
        np.sqrt(np.mean(np.square(predicted - y)[~train])), rel=1e-6
    )
    std = np.array([float(row["PREDICTED_y_STD"]) for row in read("out.csv")])
    assert (std > 0).all()
    assert 0.4 < np.sqrt(np.mean(np.square((predicted - y)[~train] / std[~train]))) < 2.5


def test_other_kernels(capsys, plain):
    write("data.csv", plain)
    result = run(capsys, "fit", "data.csv", "--target", "y", "--whole", "--kernel", "gaussian")
    assert result["kernel"].startswith("Gaussian(gamma=")
    assert result["test"]["r2"] > 0.9


@pytest.mark.parametrize(("gamma", "length"), [("2", 0.5), ("scale", (3 / 2) ** 0.5)])
def test_gamma_is_that_of_the_lengthscale(capsys, plain, gamma, length):
    write("data.csv", plain)
    options = ["--target", "y", "--whole", "--gamma", gamma]
    result = run(capsys, "fit", "data.csv", *options)
    assert result["gamma"] == pytest.approx(1 / (2 * length**2), rel=0.02)
    assert result["gamma_from"] == ("scale" if gamma == "scale" else "given")


def test_pieces_make_no_difference(capsys, globe, monkeypatch):
    write("data.csv", globe)
    found = []
    for name, size in (("whole", 1 << 20), ("pieces", 2000)):
        monkeypatch.setattr(tables, "BLOCK_BYTES", size)
        found.append(run(capsys, "fit", "data.csv", *ON_GLOBE, "--model", f"{name}.gzk"))
    assert found[0]["test"] == pytest.approx(found[1]["test"], rel=1e-9)
    X = LatLonToSphere().transform(np.column_stack([globe["lat"], globe["lon"]]))
    predicted = [load(f"{name}.gzk").predict(X) for name in ("whole", "pieces")]
    np.testing.assert_array_equal(*predicted)


@pytest.mark.slow
def test_centers(capsys, globe, monkeypatch):
    """The rows come in pieces, again in every step; the model keeps some of them."""
    monkeypatch.setattr(tables, "BLOCK_BYTES", 2000)
    write("data.csv", globe)
    result = run(capsys, "fit", "data.csv", *ON_GLOBE, "--centers", "90")
    assert result["whole"]
    assert result["centers"] == 90
    assert result["preconditioner"] is None
    assert result["test"]["r2"] > 0.99
    assert 0 <= result["residual"] <= 1e-3
    model, train = load("model.gzk"), ~held_out(np.arange(400), 0.1, 0)
    X = LatLonToSphere().transform(np.column_stack([globe["lat"], globe["lon"]]))
    centers, y = model.X_fit_, globe["y"]
    assert centers.shape == (90, 3)
    assert all((X[train] == centre).all(axis=1).any() for centre in centers)

    expected = KernelRidge(
        model.kernel_, result["alpha"], centers=centers, fit_intercept=True, tol=1e-6
    ).fit(X[train], y[train])
    np.testing.assert_allclose(model.predict(X), expected.predict(X), atol=1e-2)
    run(capsys, "predict", "model.gzk", "data.csv", "--output", "out.csv")
    predicted = np.array([float(row["PREDICTED_y"]) for row in read("out.csv")])
    np.testing.assert_allclose(predicted, model.predict(X), rtol=5e-12)  # of twelve digits
    run(capsys, "predict", "model.gzk", "data.csv", "--output", "std.csv", "--std")
    spread = np.array([float(row["PREDICTED_y_STD"]) for row in read("std.csv")])
    np.testing.assert_allclose(spread, model.predict(X, return_std=True)[1], rtol=6e-4)

    assert cli.main(["fit", "data.csv", *ON_GLOBE, "--force", "--centers", "1000"]) == 0
    out = capsys.readouterr().out
    assert re.search(rf"kernel +Matern\(.*, at {train.sum()} centres", out)
    assert re.search(r"solution +\d+ steps? to a relative residual of [0-9.e-]+ ", out)


@pytest.mark.slow
def test_long_fits_are_announced_and_say_how_they_stand(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (2500, 2))
    y = np.sin(4 * X[:, 0]) * X[:, 1] + 0.05 * rng.standard_normal(2500)
    monkeypatch.setattr(module, "ANNOUNCED_ROWS", 100)
    monkeypatch.setattr(module, "ANNOUNCED_SECONDS", 0.0)
    monkeypatch.setattr(module, "MORE_ROWS", 2000)
    monkeypatch.setattr(kernel_system, "HELD_ROWS", 1000)
    told, said = [], []
    found = module.fit_whole(
        X,
        y,
        kernel="matern",
        gamma="2",
        globe=False,
        seed=0,
        report=lambda *one: told.append(one),
        say=said.append,
    )
    assert re.fullmatch(
        r"The whole kernel of 2,500 rows takes about [\d.e-]+ s \(\d+ steps?\) and \d+ MB", *said
    )
    steps = [one for one in told if one[0] == "solving" and len(one) == 3]
    assert [one[2].split(",")[0] for one in steps] == [f"step {i + 1}" for i in range(len(steps))]
    assert len(steps) >= found.model.n_iter_
    assert all(0 <= share < 1 for _, share, _ in steps)
    assert max(share for _, share, _ in steps) > 0.5
    assert told.index(("preconditioning", 0)) < told.index(("preconditioning", 1))
    assert told.index(("preconditioning", 1)) < told.index(steps[0])
    assert told[-1] == ("solving", 1)
    assert found.model.preconditioner == "auto"
    assert found.model.residual_ <= module.TOL
    assert "landmarks" in found.preconditioner


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--features", "64"], "--features 64 can't be combined with --whole"),
        (["--centers", "0"], "--centers must be a whole number between 1 and 16,384; got 0"),
        (["--gamma", "wide"], "--gamma must be auto, scale or a positive number; got wide"),
        (["--columns", "y"], "is named twice"),
    ],
)
def test_bad_options(capsys, plain, options, reason):
    write("data.csv", plain)
    assert reason in refuse(capsys, "fit", "data.csv", "--target", "y", "--whole", *options)
    assert files() == ["data.csv"]


def test_centers_are_for_the_whole_kernel(capsys, plain):
    write("data.csv", plain)
    assert "--centers 9 needs the whole kernel; add --whole" in refuse(
        capsys, "fit", "data.csv", "--target", "y", "--centers", "9"
    )


def test_one_place(capsys):
    write("data.csv", {"lat": np.full(50, 48.1), "lon": np.full(50, 11.3), "y": np.arange(50)})
    assert "all training rows are at the same place" in refuse(capsys, "fit", "data.csv", *ON_GLOBE)


@pytest.mark.weekly
def test_interrupt():
    """Ctrl-C in the middle of the work: exit code 130 and no model, not even half of one."""
    rng = np.random.default_rng(0)
    lat, lon = np.degrees(np.arcsin(rng.uniform(-1, 1, 60_000))), rng.uniform(-180, 180, 60_000)
    write("data.csv", {"lat": lat, "lon": lon, "y": rng.standard_normal(60_000)})
    process = start("fit", "data.csv", *ON_GLOBE)
    time.sleep(2)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (130, ""), err
    assert err.strip() == "gzkcore: interrupted; unfinished files were not written"
    assert files() == ["data.csv"]
    assert not Path("model.gzk").exists()
