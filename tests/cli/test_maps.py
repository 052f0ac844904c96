"""The maps of the command: where they look, how they fade, their colours."""

import re
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from gzkcore import KernelRidge, Laplacian, Matern, TableEncoder
from gzkcore.cli import maps
from gzkcore.rows.frames import Frame
from gzkcore.sphere.globe import EARTH_KM
from gzkcore.tabular.columns.number import Number

PLACE = ("latitude", "longitude")


def box(south, north, west, east, n=500):
    rng = np.random.default_rng(0)
    return np.column_stack([rng.uniform(south, north, n), rng.uniform(west, east, n)])


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


def test_the_range_of_deviations_is_told_with_that_of_the_colors():
    std = np.append(np.linspace(1, 2, 1000), 9.0)
    norm, _ = maps._steps(std)
    told = maps._ranges(std, norm, "height (m)")
    assert re.fullmatch(r"1 to 9 m\ncolours: from [\d.]+ to 2(\.\d)?", told), told
    norm, _ = maps._steps(std[:-1])
    assert maps._ranges(std[:-1], norm, "height (m)") == "1 to 2 m"


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

    surface = maps.Surface(lambda cells: 1e5 * cells[:, 0], std, places, 30.0, 60_000.0)
    figure = maps.map_of(surface, "title", "y")
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

    surface = maps.Surface(predict, lambda cells: 1 + 0 * cells[:, 0], places, 30.0, 9.0)
    figure = maps.map_of(surface, "title", "y")
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
    surface = maps.Surface(
        lambda cells: 50 * cells[:, 0], lambda cells: np.where(cells[:, 1] < 0, 900.0, 50.0),
        box(-60, 80, -180, 180), 30.0, 800.0,
    )  # fmt: skip
    maps.draw_elevation(tmp_path / "map.png", surface)
    return figures[0]


def test_the_map_of_elevations_has_one_panel_without_dots_and_says_what_is_hatched(elevation):
    land, foot = elevation.axes
    assert land.get_title("left") == "Elevation, predicted from 500 airports"
    assert not land.lines
    assert [text.get_text() for text in foot.texts[:-1]] == [
        "100", "300", "600", "1,000", "1,500", "2,200", "3,200 m",
    ]  # fmt: skip
    limit = maps._known(np.array([50.0, 900.0]), 800.0)[1]
    assert foot.texts[-1].get_text().endswith(f"standard deviation above {limit:.0f} m")
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


@pytest.mark.parametrize(
    ("label", "told"),
    [
        ("height (m)", "12 m"), ("temperature (°C)", "12 °C"), ("NO2 (µg/m³)", "12 µg/m³"),
        ("height", "12"), ("price (2026)", "12"), ("dust (mean of the year)", "12"), ("f()", "12"),
    ],
)  # fmt: skip
def test_numbers_have_the_unit_that_a_label_ends_with(label, told):
    assert maps._with_unit("12", label) == told


@pytest.mark.usefixtures("small")
def test_where_nothing_is_known_both_maps_are_hatched():
    """The second was one colour in nine tenths of it: what it said of the rest was not seen."""
    places = box(46, 48, 6, 10, 50)
    south, *_ = maps.window_of(places)

    def std(cells):
        return np.where(cells[:, 0] < 46.5, 5 + cells[:, 0] - south, 60.0)

    surface = maps.Surface(lambda cells: cells[:, 0], std, places, 30.0, 60.0)
    figure = maps.map_of(surface, "title", "y (m)")
    first, second = figure.axes
    assert all(any(part.hatches for part in axes.collections) for axes in (first, second))
    (limit,) = {axes.get_xlabel().split("above ")[1] for axes in (first, second)}
    assert limit.endswith(" m")
    bar = second.child_axes[0]
    assert bar.get_ylim()[1] < 41  # the colours are those of what is known
    assert "5" in second.get_title("left")
    assert float(re.search(r"to ([\d.]+) m", second.get_title("left"))[1]) < 41  # so is the title


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

    surface = maps.Surface(lambda c: 1e6 * c[:, 0], std if sure else None, places, 9, 6e6)
    figure = maps.map_of(surface, f"{label}, fitted to {'part_' * 12}.csv", label)
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


def test_a_map_fades_where_the_surface_is_unknown():
    """By the variance beyond the noise, as a share of that of the data: noise alone hatches nothing."""
    opacity, limit = maps._known(np.array([1.0, 1.1, 3.0]), 3.0)
    np.testing.assert_array_equal(opacity[[0, 2]], [1, 0])
    assert opacity[1] == 1
    assert 1.1 < limit < 3
    std = np.linspace(1, 3, 2001)
    opacity, limit = maps._known(std, 3.0)
    assert std[opacity < maps.HATCHED].min() == pytest.approx(limit, abs=2e-3)
    assert np.interp(limit, std, (std**2 - 1) / 8) == pytest.approx(0.45, abs=0.01)
    noisy, _ = maps._known(np.full(5, 2.0), 2.0)
    np.testing.assert_array_equal(noisy, 1)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("sure", [True, False], ids=["with std", "without"])
def test_a_second_map_shows_the_standard_deviation(sure):
    import matplotlib as mpl

    before = dict(mpl.rcParams)
    places = box(46, 48, 6, 10, 50)

    def std(cells):
        return 1 + maps._distance_km(places, cells)

    surface = maps.Surface(lambda cells: cells[:, 0], std if sure else None, places, 30.0, 20.0)
    axes = maps.map_of(surface, "title", "y").axes
    assert len([panel for panel in axes if panel.get_title(loc="left")]) == 1 + sure
    assert axes[0].get_xlabel().startswith("dots: 50 training points")
    assert dict(mpl.rcParams) == before  # the user's own style is left alone


def test_standard_deviations_that_hardly_vary_are_in_the_middle_of_the_colors():
    """They were all in the darkest of them."""
    norm, _ = maps._steps(np.linspace(3.4, 3.5, 50))
    assert norm.boundaries[0] < 3.2
    assert norm.boundaries[-1] > 3.7


@pytest.mark.usefixtures("small")
def test_one_standard_deviation_is_told_once():
    places = box(46, 48, 6, 10, 50)
    surface = maps.Surface(
        lambda cells: cells[:, 0], lambda cells: 0 * cells[:, 0] + 42.2, places, 9, 60
    )
    figure = maps.map_of(surface, "title", "y")
    assert figure.axes[1].get_title("left") == "Standard deviation of a new value: 42.2"


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
    surface = maps.Surface(lambda cells: cells[:, 0], lambda cells: cells[:, 1] + 200, places, 9, 9)
    maps.map_of(surface, "title", "y")
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
    surface = maps.surface_of(model, lambda cells: cells, X, 1.0, np.arange(9.0))
    assert (surface.std is None) == (alpha == 0)
    assert surface.std is None or surface.std(X[:5]).shape == (5,)


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
