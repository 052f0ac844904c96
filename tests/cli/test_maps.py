"""The maps of the command: where they look, how they fade, their colours."""

import dataclasses
import itertools
import re
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from gzkcore import KernelRegressor, KernelRidge, Laplacian, Matern, TableEncoder
from gzkcore.cli import maps
from gzkcore.rows.frames import Frame
from gzkcore.sphere.globe import EARTH_KM
from gzkcore.tabular.columns.number import Number

PLACE = ("latitude", "longitude")


def box(south, north, west, east, n=500):
    rng = np.random.default_rng(0)
    return np.column_stack([rng.uniform(south, north, n), rng.uniform(west, east, n)])


def surface(predict, std, places, *, known=None, window=None):
    """Return a surface on the map of these places."""
    return maps.Surface(predict, std, known, places, window or maps.window_of(places), 30.0)


def grid(step):
    axes = np.arange(step / 2 - 90, 90, step), np.arange(step / 2 - 180, 180, step)
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 2)


@pytest.mark.parametrize(
    ("places", "window"),
    [
        (box(-90, 90, -180, 180), (-90, 90, -180, 180)),
        (box(46, 48, 6, 10), (45.8, 48.2, 5.7, 10.3)),
        (box(-20, -15, 175, 184), (-20.7, -14.3, 174.3, 184.7)),  # 184: across the date line
        (box(-20, -15, 355, 360), (-20.4, -14.6, -5.4, 0.4)),
        (np.array([[47.0, 8.0]]), (46.99, 47.01, 7.99, 8.01)),
        (box(10, 10, 0, 50, 100), (-2, 22, -4, 54)),  # no strip without height
    ],
    ids=["globe", "Alps", "Fiji", "west of 0", "one place", "a line"],
)
def test_a_map_shows_where_the_data_are(places, window):
    found = maps.window_of(places)
    np.testing.assert_allclose(found, window, atol=0.02 * (window[3] - window[2]) + 0.01)
    south, north, west, east = found
    assert south <= places[:, 0].min() <= places[:, 0].max() <= north
    assert ((places[:, 1] - west) % 360 <= east - west).all()


def test_maps_fade_by_the_spacing_of_the_data():
    """A grid has no holes and scattered points are no spots, however few there are."""
    for places in (grid(5), grid(20), box(-60, 60, -180, 180)):
        near = maps._spacing_km(places)
        cells = grid(2)
        inside = cells[np.abs(cells[:, 0]) < 50]
        away = maps._distance_km(places, inside)
        assert np.mean(away < 2 * near) > 0.97
        assert np.mean(away < near) > 0.75
    assert maps._spacing_km(np.array([[47.0, 8.0], [47.0, 8.0]])) == 0
    assert maps._distance_km(np.array([[0.0, 0.0]]), np.array([[0.0, 90.0]])) == pytest.approx(
        6371 * np.pi / 2
    )


@pytest.mark.parametrize(
    ("low", "high", "name", "limits"),
    [
        (250, 310, "viridis", (250.3, 309.7)),
        (-3, 30, "viridis", (-2.835, 29.835)),
        (-20, 30, "RdBu_r", (-29.75, 29.75)),
        (-4, 3, "RdBu_r", (-3.965, 3.965)),
    ],
)
def test_colors_suit_the_values(low, high, name, limits):
    norm, colors = maps._colors(np.linspace(low, high, 10_001))
    assert colors.name == name
    np.testing.assert_allclose((norm.vmin, norm.vmax), limits, rtol=1e-3)


def test_colors_span_no_more_than_the_data():
    """A surface between 0 and 30 went from -60 to 60 at the edges, and so did its colours."""
    surface = np.linspace(-60, 60, 1001)
    norm, colors = maps._colors(surface, (0.0, 30.0))
    assert (colors.name, norm.vmin, norm.vmax) == ("viridis", 0, 30)
    norm, _ = maps._colors(surface, (100.0, 130.0))  # a surface that is not near any of them
    assert norm.vmax < 61


@pytest.mark.parametrize(
    ("value", "told"),
    [(35000.0, "35,000"), (1.25e6, "1,250,000"), (0.1 + 0.2, "0.3"), (-40.0, "\N{MINUS SIGN}40")],
)
def test_numbers_beside_colors_are_printed_plainly(value, told):
    assert maps._tick(value) == told


@pytest.fixture
def small(monkeypatch):
    """Maps of few cells."""
    pytest.importorskip("matplotlib", reason="the extra `cli` is not installed")
    monkeypatch.setattr(maps, "LONGER_SIDE", 40)


@pytest.mark.usefixtures("small")
def test_a_large_standard_deviation_is_printed_plainly():
    places = box(46, 48, 6, 10, 50)

    def std(cells):
        return 30_000 + 1e4 * maps._distance_km(places, cells)

    figure = maps.map_of(surface(lambda cells: 1e5 * cells[:, 0], std, places), "title", "y")
    figure.canvas.draw()
    texts = [figure.axes[0].get_xlabel()]
    for axes in figure.axes:
        for each in (axes, *axes.child_axes):
            texts += [tick.get_text() for tick in each.get_yticklabels()]
    assert not [text for text in texts if "e+" in text]
    assert any(",000" in text for text in texts)


def test_one_value_is_in_the_middle_of_the_colors():
    """It was drawn in the darkest, which stood for less."""
    for value in (0.0, 3.0, -1e6):
        norm, _ = maps._colors(np.full(10, value))
        assert norm(value) == pytest.approx(0.5)
        assert norm.vmin < value < norm.vmax


@pytest.mark.usefixtures("small")
def test_colors_span_what_is_shown():
    """They spanned the peaks at the data, and all that is between them was below the colours."""
    places = box(46, 48, 6, 10, 50)

    def predict(cells):
        return cells[:, 0] + 1e4 * (len(cells) == len(places))

    figure = maps.map_of(surface(predict, lambda cells: 1 + 0 * cells[:, 0], places), "title", "y")
    low, high = figure.axes[0].child_axes[0].get_ylim()
    assert 45 < low < 46.5
    assert 47.5 < high < 49


@pytest.fixture
def elevation(monkeypatch, tmp_path):
    """The map of the Earth by a surface that is high in the north, and unknown in the west."""
    pytest.importorskip("matplotlib", reason="the extra `cli` is not installed")
    monkeypatch.setattr(maps, "LONGER_SIDE", 40)
    figures = []
    monkeypatch.setattr(maps, "save_picture", lambda figure, _: figures.append(figure))
    places = box(-60, 80, 5, 175)
    shown = surface(
        lambda cells: 50 * cells[:, 0], None, places,
        known=lambda cells: 1.0 * (cells[:, 1] > 0), window=maps.EARTH,
    )  # fmt: skip
    maps.draw_elevation(tmp_path / "map.png", shown)
    return figures[0]


def test_the_map_of_elevations_has_one_panel_without_dots_and_says_what_is_hatched(elevation):
    land, foot = elevation.axes
    assert land.get_title("left") == "Elevation, predicted from 500 airports"
    assert not land.lines
    assert [text.get_text() for text in foot.texts[:-1]] == [
        "100", "300", "600", "1,000", "1,500", "2,200", "3,200 m",
    ]  # fmt: skip
    assert foot.texts[-1].get_text() == "too few airports nearby to tell"
    elevation.draw_without_rendering()
    assert all(text.get_window_extent().x1 <= elevation.bbox.x1 for text in foot.texts)


def test_the_map_of_elevations_is_filled_to_its_edges(elevation):
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    land, _ = elevation.axes
    canvas = FigureCanvasAgg(elevation)
    canvas.draw()
    pixels = np.asarray(canvas.buffer_rgba())[::-1, :, :3]
    inside = land.get_window_extent()
    bottom, top = round(inside.y0) + 2, round(inside.y1) - 2
    left, right = round(inside.x0) + 2, round(inside.x1) - 2
    for row in (bottom, top):  # half is hatched; in the east the lowest and the highest land
        assert not (pixels[row, left:right] == 255).all(axis=1).any()
    green, brown = ([*bytes.fromhex(color[1:])] for color in (maps.LAND[0], maps.LAND[-1]))
    assert list(pixels[bottom, right]) == green
    assert list(pixels[top, right]) == brown
    pale = [*bytes.fromhex(maps.NOTHING[1:])]
    assert (pixels[bottom:top, left] == pale).all(axis=1).any()


@pytest.mark.usefixtures("small")
def test_where_rows_are_far_both_maps_are_hatched():
    """The second was one colour in nine tenths of it: what it said of the rest was not seen."""
    places = box(46, 48, 6, 8, 50)
    std, known = (lambda cells: 1 + cells[:, 1] ** 2), (lambda cells: 1.0 * (cells[:, 1] < 9))
    window = (46.0, 48.0, 6.0, 12.0)
    both = maps.map_of(surface(std, std, places, known=known, window=window), "title", "y (m)").axes
    assert all(any(part.hatches for part in axes.collections) for axes in both)
    assert all(axes.get_xlabel().endswith("far from all training points") for axes in both)
    # The colours are those of what is not hatched, and no other words name their range.
    assert both[1].child_axes[0].get_ylim()[1] < 100
    assert both[1].get_title("left") == "Standard deviation of a new value"
    shown = surface(std, std, places, known=known, window=window)
    shown = maps.map_of(dataclasses.replace(shown, hatched=False), "title", "y (m)").axes
    assert not any(part.hatches for axes in shown for part in axes.collections)
    assert shown[1].child_axes[0].get_ylim()[1] > 140


def test_noise_hatches_nothing():
    """Less is known of the function even at the rows: what is known there is the measure."""
    places = box(46, 48, 6, 8, 50)
    near = surface(np.ravel, None, places, known=lambda cells: 0.01 + 0.29 * (cells[:, 1] < 12))
    assert near.opacity[0].min() == 1
    far = dataclasses.replace(near, window=(46.0, 48.0, 6.0, 16.0))
    assert far.opacity[0].min() == 0


def test_arrows_beside_colors_stand_for_values_beyond_them():
    spread = np.linspace(1, 2, 1000)
    for std, extend in (
        (spread, {"neither"}),
        (np.concatenate([spread, [9.0]]), {"max"}),
        (np.concatenate([spread, [0.1]]), {"min"}),
        (np.concatenate([spread, [0.1, 9.0]]), {"both"}),
    ):
        norm, _ = maps._steps(std)
        assert norm.extend in extend
        assert norm.boundaries[0] > 0.7
        assert norm.boundaries[-1] < 2.5


@pytest.mark.parametrize("sure", [True, False], ids=["with std", "without"])
@pytest.mark.parametrize(
    "places",
    [box(-60, 80, -180, 180, 90), box(47, 55, 6, 15, 50), box(-55, -18, -75, -68, 50)],
    ids=["globe", "region", "tall"],
)
@pytest.mark.usefixtures("small")
def test_long_names_stay_in_the_picture(places, sure):
    label = "concentration of nitrogen dioxide, mean of the year 2026 (in micrograms)"

    def std(cells):
        return 1e5 + 1e4 * maps._distance_km(places, cells)

    shown = surface(lambda c: 1e6 * c[:, 0], std if sure else None, places)
    figure = maps.map_of(shown, f"{label}, fitted to {'part_' * 12}.csv", label)
    figure.draw_without_rendering()
    for axes in figure.axes:
        bar = axes.child_axes[0]
        texts = [axes._left_title, axes.xaxis.label, bar.yaxis.label]
        for text in (*texts, *axes.get_yticklabels(), *bar.get_yticklabels()):
            extent = text.get_window_extent()
            assert extent.x0 >= 0, text
            assert extent.x1 <= figure.bbox.x1, text


def test_skewed_values_share_the_colors():
    values = np.exp(np.linspace(0, 5, 1001))
    norm, _ = maps._colors(values)
    assert norm(np.median(values)) > 0.2
    assert norm.vmax > 100


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("noise", [0.05, 0.3])
def test_a_map_is_hatched_where_rows_are_far_and_not_where_noise_is_large(noise):
    """It was hatched at rows in mountains, whose heights vary."""
    rng = np.random.default_rng(0)
    places = np.concatenate([box(46, 48, 6, 8, 200), [[47.0, 20.0]]])
    y = np.sin(3 * places[:, 0]) + noise * (1 + 5 * (places[:, 1] > 7)) * rng.normal(size=201)
    frame = Frame(dict(zip(PLACE, places.T, strict=True)))
    model = KernelRegressor(kernel=Matern(1.5, 0.01), random_state=0).fit(frame, y)

    def take(degrees):
        return Frame(dict(zip(PLACE, degrees.T, strict=True)))

    shown = maps.surface_of(model, take, places, y, window=(40.0, 50.0, 0.0, 25.0))
    cells = maps._cells(shown.window)
    opacity = shown.opacity[0].reshape(cells.shape)
    rows, columns = (
        np.abs(axis - places[:, [i]]).argmin(axis=1)
        for i, axis in enumerate((cells.latitude, cells.longitude))
    )
    assert (opacity[rows, columns] >= maps.HATCHED).all()
    assert opacity[:, np.abs(cells.longitude - 14).argmin()].max() == 0


def test_without_variances_the_map_says_from_which_distance_on_it_is_hatched():
    """It named a larger one."""
    places = box(46, 48, 6, 10, 50)
    shown = surface(lambda cells: cells[:, 0], None, places, window=(40.0, 50.0, 0.0, 15.0))
    opacity, far = shown.opacity
    away = maps._distance_km(places, maps._middles(maps._cells(shown.window)))
    limit = away[opacity < maps.HATCHED].min()
    assert float(re.search(r"more than (\d+) km", far)[1]) == pytest.approx(limit, rel=0.05)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("sure", [True, False], ids=["with std", "without"])
def test_a_second_map_shows_the_standard_deviation(sure):
    import matplotlib as mpl

    before = dict(mpl.rcParams)
    places = box(46, 48, 6, 10, 50)

    def std(cells):
        return 1 + maps._distance_km(places, cells)

    shown = surface(lambda cells: cells[:, 0], std if sure else None, places)
    axes = maps.map_of(shown, "title", "y").axes
    assert len([panel for panel in axes if panel.get_title(loc="left")]) == 1 + sure
    assert axes[0].get_xlabel().startswith("dots: 50 training points")
    assert dict(mpl.rcParams) == before  # the user's own style is left alone


def test_standard_deviations_that_hardly_vary_are_in_the_middle_of_the_colors():
    """They were all in the darkest of them."""
    norm, _ = maps._steps(np.linspace(3.4, 3.5, 50))
    assert norm.boundaries[0] < 3.2
    assert norm.boundaries[-1] > 3.7


@pytest.mark.slow
@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(
    ("places", "resolution"),
    [
        (box(-90, 90, -180, 180, 50), "c"),
        (box(30, 60, -10, 40, 50), "l"),
        (box(-20, -15, 175, 184, 50), "i"),  # across the date line
    ],
)
def test_coast_lines_where_a_package_brings_them(places, resolution, monkeypatch):
    from matplotlib.collections import LineCollection

    asked, drawn = [], []

    class Basemap:
        """As the class of that name in basemap, which draws on the axes of a map."""

        def __init__(self, **options):
            asked.append(options)

        def drawcoastlines(self, **options):
            drawn.append(options["ax"])
            return LineCollection([])

    monkeypatch.setitem(sys.modules, "mpl_toolkits.basemap", SimpleNamespace(Basemap=Basemap))
    shown = surface(lambda cells: cells[:, 0], lambda cells: cells[:, 1] + 200, places)
    maps.map_of(shown, "title", "y")
    south, north, west, east = maps.window_of(places)
    for one in asked:
        assert (one["llcrnrlat"], one["urcrnrlat"]) == (south, north)
        assert (one["llcrnrlon"], one["urcrnrlon"]) == (west, east)
        assert one["resolution"] == resolution
    assert len(set(drawn)) == len(asked) == 2


@pytest.mark.parametrize("kernel", [Matern(1.5, [2.0, 4.0]), Laplacian([0.5, 0.25])])
@pytest.mark.parametrize("on_sphere", [True, False])
def test_the_lengthscale_of_every_kernel_in_kilometres(kernel, on_sphere):
    columns = [Number(name, place) for place, name in enumerate(PLACE)]
    columns[0].scale, columns[1].scale = 3.0, 1.0
    encoder = SimpleNamespace(on_sphere_=on_sphere, columns_=columns)
    km = maps.length_km(
        SimpleNamespace(kernel_=kernel, encoder_=encoder), np.array([[0.0, 5.0], [0.0, 7.0]])
    )
    assert km == pytest.approx(3 * EARTH_KM if on_sphere else 4 * EARTH_KM * np.pi / 180)


@pytest.mark.parametrize("far", [False, True], ids=["standardised", "by ranks"])
def test_degrees_of_longitude_are_shorter_in_the_north(far):
    """One standard deviation of 20 degrees at 75 degrees north, even if one place is far out."""
    places = box(74, 76, 10, 30)
    places[0, 1] = 170.0 if far else places[0, 1]
    frame = Frame(dict(zip(PLACE, places.T, strict=True)))
    frame.values["height"] = np.arange(len(places)) * 1.0  # places alone are on the sphere
    encoder = TableEncoder().fit(frame)
    encoder.columns_.pop()
    assert [column.quantiles is not None for column in encoder.columns_] == [False, far]
    model = SimpleNamespace(kernel_=Matern(1.5, [50.0, 1.0]), encoder_=encoder)
    parallel = EARTH_KM * np.radians(20) * np.cos(np.radians(75))
    assert maps.length_km(model, places) == pytest.approx(parallel / 12**0.5, rel=0.25)


@pytest.mark.parametrize("alpha", [1e-2, 0.0])
def test_models_on_centres_say_how_sure_they_are(alpha):
    X = np.random.default_rng(0).uniform(-1, 1, (80, 2))
    model = KernelRidge(alpha=alpha, centers=15, random_state=0).fit(X, X[:, 0])
    learner = SimpleNamespace(model_=model, kernel_=None, predict=model.predict, _known=None)
    shown = maps.surface_of(learner, lambda cells: cells, X, np.arange(9.0))
    assert (shown.predict_std is None) == (shown.known is None) == (alpha == 0)
    assert shown.predict_std is None or shown.predict_std(X[:5]).shape == (5,)


def test_standard_deviations_between_larger_cells():
    """A plane is what it is, but for the rim of half a cell."""
    window = (10.0, 40.0, -20.0, 30.0)
    cells = maps._cells(window)
    found = maps._smooth(lambda places: places[:, 0] + 2 * places[:, 1], window)
    inside = (np.abs(cells.places - [25, 5]) < [14.5, 24.5]).all(axis=1)
    wanted = cells.places[:, 0] + 2 * cells.places[:, 1]
    np.testing.assert_allclose(found[inside], wanted[inside], rtol=0, atol=1e-9)


def test_of_many_places_dots_are_apart_and_counted():
    places = np.random.default_rng(0).uniform([-60, -180], [60, 180], (40_000, 2))
    drawn = maps._apart(places, maps.GLOBE)
    square = 360 / maps.SQUARES
    assert 40 * 100 < len(drawn) <= 41 * 121
    assert len(np.unique(np.floor(drawn / square), axis=0)) == len(drawn)
    few = places[: maps.FEW_DOTS]
    assert maps._apart(few, maps.GLOBE) is few


@pytest.mark.usefixtures("small")
def test_errors_of_labels_have_no_scale_of_numbers():
    """It went from 0 to 1 in nine colours, with arrows beyond."""
    for of_labels, title in ((True, "wrong predictions in red"), (False, "actual less predicted")):
        places, errors = box(46, 48, 6, 10, 50), np.arange(50.0) % 2
        [axes] = maps.map_of_errors(places, errors, of_labels, 4.0).axes
        assert bool(axes.child_axes) == (not of_labels)
        assert " ".join(axes.get_title().split()).endswith(title)
        white, red = axes.collections[0].to_rgba([0.0, 1.0])[:, :3]
        assert white.min() > 0.9
        assert red[0] > 2 * red[1:].max()


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("inches", [4.0, 10.0])
def test_nothing_beside_a_map_is_cut_off(inches):
    """A picture a little too low for its width had no room for the name of the colours."""
    places = box(46, 48, 6.5, 10, 244)
    shown = surface(
        lambda cells: cells[:, 0], lambda cells: cells[:, 1] - 6, places, known=lambda c: c[:, 0]
    )
    errors = maps.map_of_errors(places, places[:, 0] - 47, False, inches)
    for figure in (*maps.maps_of(shown, "temp", "temp", inches), errors):
        figure.draw_without_rendering()
        figure.draw_without_rendering()
        box_of_all = figure.get_tightbbox()
        assert box_of_all.x0 >= 0
        assert box_of_all.x1 <= inches
        assert figure.axes[0].get_window_extent().width > 0.55 * inches * figure.dpi


@pytest.mark.usefixtures("small")
def test_few_deviations_are_named_beside_their_colours():
    places = box(46, 48, 6.5, 10, 244)
    shown = surface(lambda cells: cells[:, 0], lambda cells: cells[:, 1] - 6, places)
    *_, deviations = maps.maps_of(shown, "temp", "temp", 4.0)
    assert 3 <= len(deviations.axes[0].child_axes[0].get_yticks()) <= 6


@pytest.mark.usefixtures("small")
def test_degrees_stand_apart_on_a_telephone():
    """Each ran into the next, and dots covered the map."""
    places = box(-80, 80, -180, 180, 900)
    shown = surface(lambda cells: cells[:, 0], None, places)
    narrow, broad = (next(maps.maps_of(shown, "y", "y", inches)) for inches in (4.0, 10.0))
    narrow.draw_without_rendering()
    boxes = [text.get_window_extent() for text in narrow.axes[0].get_xticklabels()]
    assert len(boxes) >= 2
    assert all(left.x1 + 5 < right.x0 for left, right in itertools.pairwise(boxes))
    small, large = (figure.axes[0].lines[0].get_markersize() for figure in (narrow, broad))
    assert small < 0.6 * large
