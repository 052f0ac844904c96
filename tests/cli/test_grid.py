"""Predictions on a grid, for a GIS."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from commands import QUICK, read, refuse, run, write
from scipy.io import netcdf_file

from gzkcore._util.model_io import load
from gzkcore.cli import grid
from gzkcore.cli import main as cli
from gzkcore.cli.commands_predict import _Predictor
from gzkcore.cli.grid import grid_of, window_asked
from gzkcore.rows.frames import Frame

pytest.importorskip("typer", reason="the extra `cli` is not installed")

ON_GLOBE = ["--target", "y", "--lat", "lat", "--lon", "lon"]


def test_netcdf_and_csv_of_features(capsys, globe):
    write("data.csv", globe)
    run(capsys, "fit", "data.csv", *ON_GLOBE, *QUICK)
    result = run(capsys, "predict", "model.gzk", "--grid", "10", "--output", "map.nc", "--std")
    assert (result["rows"], result["shape"]) == (648, [18, 36])
    with netcdf_file("map.nc", mmap=False) as file:
        latitude, longitude = (file.variables[name][:] for name in ("latitude", "longitude"))
        surface, std = (file.variables[f"PREDICTED_y{end}"][:] for end in ("", "_STD"))
        assert file.variables["latitude"].units == b"degrees_north"
    np.testing.assert_allclose(latitude, np.arange(85, -90, -10.0))
    np.testing.assert_allclose(longitude, np.arange(-175, 180, 10.0))
    X = Frame({"lat": np.full(36, 5.0), "lon": np.array(longitude, dtype=float)})
    np.testing.assert_allclose(surface[8], load("model.gzk").predict(X), rtol=1e-9)
    assert (std > 0).all()

    run(capsys, "predict", "model.gzk", "--grid", "10", "--output", "map.csv")
    rows = read("map.csv")
    assert list(rows[0]) == ["longitude", "latitude", "PREDICTED_y"]
    np.testing.assert_allclose(
        [float(row["PREDICTED_y"]) for row in rows], surface.ravel(), atol=1e-6
    )


def test_geotiff(capsys, globe):
    tifffile = pytest.importorskip("tifffile", reason="the extra `grids` is not installed")
    write("data.csv", globe)
    run(capsys, "fit", "data.csv", *ON_GLOBE, *QUICK)
    given = ["--grid", "10", "--window", "0,40,-20,10", "--std"]
    for output in ("map.tif", "map.nc"):
        run(capsys, "predict", "model.gzk", *given, "--output", output)
    with netcdf_file("map.nc", mmap=False) as file:
        wanted = [file.variables[f"PREDICTED_y{end}"][:] for end in ("", "_STD")]
    with tifffile.TiffFile("map.tif") as file:
        np.testing.assert_array_equal(file.asarray(), wanted)
        found = file.geotiff_metadata
        assert found["ModelPixelScale"] == [10, 10, 0]
        assert found["ModelTiepoint"] == [0, 0, 0, -20, 40, 0]
        assert found["GeographicTypeGeoKey"] == 4326
        assert 'role="description">PREDICTED_y_STD</Item>' in file.pages[0].tags[42112].value
    run(capsys, "predict", "model.gzk", *given[:-1], "--output", "one.tif")
    with tifffile.TiffFile("one.tif") as file:
        np.testing.assert_array_equal(file.asarray(), wanted[0])
    reason = refuse(capsys, "predict", "model.gzk", *given, "--output", "map.png")
    assert "must end with .nc (NetCDF), .tif (GeoTIFF) or .csv for a grid" in reason


@pytest.mark.slow
@pytest.mark.parametrize(
    "named", [True, pytest.param(False, marks=pytest.mark.weekly)], ids=["by options", "by names"]
)
def test_a_window_by_the_default_fit(capsys, globe, named):
    names = {} if named else {"lat": "Latitude", "lon": "long"}
    write("data.csv", {names.get(name, name): column[:100] for name, column in globe.items()})
    run(capsys, "fit", "data.csv", *(ON_GLOBE if named else ON_GLOBE[:2]))
    window = ["--grid", "10", "--window", "0,40,170,200"]
    run(capsys, "predict", "model.gzk", *window, "--output", "map.csv")
    rows = read("map.csv")
    assert [float(row["longitude"]) for row in rows[:3]] == [175, 185, 195]
    assert all(len(row["PREDICTED_y"]) <= len("-1.23456789e-05") for row in rows)
    reason = refuse(capsys, "predict", "model.gzk", *window, "--output", "map.csv")
    assert reason.startswith("--output map.csv exists already")
    write("same.csv", {names.get("lat", "lat"): [35.0], names.get("lon", "lon"): [-175.0]})
    run(capsys, "predict", "model.gzk", "same.csv", "--output", "out.csv")
    expected = float(read("out.csv")[0]["PREDICTED_y"])
    assert float(rows[1]["PREDICTED_y"]) == pytest.approx(expected, abs=1e-9)


def test_netcdf_of_names_that_are_not_ascii(capsys, globe):
    write("data.csv", {"lat": globe["lat"], "lon": globe["lon"], "Höhe": globe["y"]})
    run(capsys, "fit", "data.csv", "--target", "Höhe", *ON_GLOBE[2:], *QUICK)
    run(capsys, "predict", "model.gzk", "--grid", "30", "--output", "map.nc", "--std")
    with netcdf_file("map.nc", mmap=False) as file:
        assert file.title.decode() == "Höhe"
        names = {name: each.long_name.decode() for name, each in file.variables.items()
                 if hasattr(each, "long_name")}  # fmt: skip
    assert names == {
        "PREDICTED_H_he": "predicted Höhe",
        "PREDICTED_H_he_STD": "standard deviation of predicted Höhe",
    }  # fmt: skip


def test_cells_fill_the_window():
    cells = grid_of(7.0, window_asked(7.0, "0,20,-10,30", []))
    assert cells.shape == (3, 6)
    middle = cells.latitude[0] + cells.latitude[-1], cells.longitude.mean()
    assert middle == pytest.approx((20, 10))


def test_cells_are_written_piece_by_piece(capsys, globe, monkeypatch):
    write("data.csv", globe)
    run(capsys, "fit", "data.csv", *ON_GLOBE, *QUICK)
    run(capsys, "predict", "model.gzk", "--grid", "20", "--output", "whole.csv")
    monkeypatch.setattr(grid, "CELLS_AT_A_TIME", 50)
    run(capsys, "predict", "model.gzk", "--grid", "20", "--output", "parts.csv")
    assert Path("parts.csv").read_text() == Path("whole.csv").read_text()


@pytest.mark.slow
def test_what_is_refused(capsys, globe, plain):
    write("data.csv", globe)
    write("plain.csv", plain)
    run(capsys, "fit", "data.csv", *ON_GLOBE, *QUICK)
    run(capsys, "fit", "plain.csv", "--target", "y", "--model", "plain.gzk", *QUICK)
    grid = "model.gzk --grid 1 --output"
    for options, reason in (
        ("model.gzk --output m.nc", "give either a table to predict for, or --grid"),
        ("model.gzk data.csv --grid 1 --output m.nc", "give either a table to predict"),
        ("model.gzk data.csv --window 1 --output m.csv", "add --grid"),
        (f"{grid} m.png", "must end with .nc"),
        (f"{grid} m.nc --window 9,1,2,3", "--window 9,1,2,3 must be south,north,west,east"),
        (f"{grid} m.nc --window 10,20,170,-170", "beyond the date line add 360 to the east: 190"),
        (f"{grid} m.nc --decimal-comma", "--decimal-comma is for tables, but --grid reads no"),
        (f"{grid} m.nc --encoding utf-8", "--encoding is for tables, but --grid reads no table"),
        (f"{grid} m.nc --missing NIL", "--missing is for tables, but --grid reads no table"),
        (f"{grid} m.nc --no-formulas", "--no-formulas is for tables, but --grid reads no table"),
        (f"{grid} m.nc --name latitude", "--name latitude is the name of an axis"),
        (f"{grid} m.csv --name longitude", "--name longitude is the name of an axis"),
        ("plain.gzk --grid 1 --output m.nc", "not from places alone; give a table"),
        ("model.gzk --grid 0.00005 --output m.nc", "--grid 5e-05 makes 25,920,000,000,000 cells"),
        ("model.gzk --grid 0.00005 --output m.nc", "for which 1.66e+06 GB of memory"),
        *(
            (f"model.gzk --grid {step} --output m.nc", "a number of degrees between 1e-09 and")
            for step in ("1e-100", "1e-320", "0", "nan")
        ),
    ):
        assert reason in refuse(capsys, "predict", *options.split())


@pytest.mark.slow
@pytest.mark.parametrize(
    "options", [pytest.param(QUICK, marks=pytest.mark.weekly), []], ids=["features", "default"]
)
def test_a_model_of_a_region_fills_its_region(capsys, options):
    rng = np.random.default_rng(0)
    lat, lon = rng.uniform(45, 50, 60), rng.uniform(5, 15, 60)
    write("data.csv", {"lat": lat, "lon": lon, "y": np.sin(lat) + lon / 10})
    run(capsys, "fit", "data.csv", *ON_GLOBE, *options)
    result = run(capsys, "predict", "model.gzk", "--grid", "0.5", "--output", "map.csv")
    south, north, west, east = result["window"]
    assert 43 <= south <= lat.min() < lat.max() <= north <= 52
    assert 3 <= west <= lon.min() < lon.max() <= east <= 17
    assert result["shape"] == [2 * (north - south), 2 * (east - west)]
    arguments = ["predict", "model.gzk", "--grid", "0.5", "--output", "map.csv", "--force"]
    assert cli.main(arguments) == 0
    assert ", around the places of the fit; --window changes it" in capsys.readouterr().out
    assert cli.main([*arguments, "--window", "-90,90,-180,180"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("259,200 cells")
    assert "Window" not in out
    assert "Cells" not in out
    arguments[3] = "7"
    assert cli.main([*arguments, "--window", "-10,10,0,21"]) == 0
    told = "Cells: 6.66667 by 7 degrees, so that whole cells fill the window"
    assert told in capsys.readouterr().out


def test_windows_of_the_fit_are_whole_steps_across_the_date_line():
    assert window_asked(0.5, None, [-20.2, -15.1, -185.3, -174.7]) == (-20.5, -15.0, 174.5, 185.5)
    assert window_asked(10, None, []) == (-90, 90, -180, 180)
    assert window_asked(10, None, [81.0, 89.0, 0.0, 5.0]) == (80, 90, 0, 10)
    assert window_asked(10, "0,10,0,20", [81.0, 89.0, 0.0, 5.0]) == (0, 10, 0, 20)


def test_rows_are_predicted_in_parts_of_a_few_seconds_each(monkeypatch):
    """Each part is told, also where standard deviations take minutes."""
    seconds, moments, shares = [0.0], [], []

    def predict(rows, **_):
        seconds[0] += 1e-4 * len(rows) + 0.1
        moments.append(seconds[0])
        return np.zeros(len(rows)), np.ones(len(rows))

    monkeypatch.setattr("gzkcore.cli.commands_predict.time.perf_counter", lambda: seconds[0])
    fitted = SimpleNamespace(predict=predict, _hear_of_solves=lambda *_: None)
    predictor = _Predictor(fitted, None, "y", True, False, False, False)
    mean, std = predictor(
        Frame({"x": np.zeros(300_000)}), lambda _, share: shares.append(share), 0.0, 1.0
    )
    assert len(mean) == len(std) == 300_000
    assert np.diff(moments).max() < 5
    assert len(moments) < 15
    assert shares[1:] == sorted(shares[1:])
