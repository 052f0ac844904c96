"""Tables that are read in passes: what is drawn, what is encoded, and fits to sources."""

import os
import pickle

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from gzkcore import KernelClassifier, KernelRegressor, TableEncoder, load
from gzkcore.learn import near_kernel_ridge
from gzkcore.rows import coded
from gzkcore.solve import near_lengths
from gzkcore.tabular import form, near_form, table_learner, table_passes
from gzkcore.tabular.kernel_regressor import _columns_of_targets
from gzkcore.tabular.table_passes import EncodedTable, draw, source_of, stack_tables
from gzkcore.tabular.trials import Trials


@pytest.fixture
def drawn_200(monkeypatch):
    monkeypatch.setattr(table_passes, "DRAWN_ROWS", 200)
    monkeypatch.setattr(form, "MOST_FEATURES", 50)
    monkeypatch.setattr(near_form, "MOST_IN_PASSES", 0)


def wave(n=600, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (n, 1))
    return X, 5 + np.sin(2 * X[:, 0]) + 0.1 * rng.standard_normal(n)


def cut(*arrays, rows=100):
    return [tuple(a[i : i + rows] for a in arrays) for i in range(0, len(arrays[0]), rows)]


def drawn_of(*arrays, rows=100):
    return draw(source_of(cut(*arrays, rows=rows), None, None), _columns_of_targets, 0)


# ---- drawing


@pytest.mark.usefixtures("drawn_200")
def test_rows_are_drawn_at_random_with_their_targets():
    X, y = np.arange(4000.0)[:, None], np.arange(4000.0) + 0.5
    drawn = drawn_of(X, y)
    assert len(drawn.X) == 200
    assert drawn.n_rows == drawn.n_used == 4000
    assert not drawn.complete
    np.testing.assert_array_equal(drawn.y, drawn.X[:, 0] + 0.5)
    assert (np.diff(drawn.X[:, 0]) > 0).all()  # in order
    assert abs(drawn.X.mean() - 2000) < 4 * 4000 / np.sqrt(12 * 200)


@pytest.mark.usefixtures("drawn_200")
def test_targets_are_summed_up_over_all_rows():
    X, y = wave(1000)
    w = np.random.default_rng(1).integers(0, 3, 1000).astype(float)
    y[300:400] *= 1e6
    batches = source_of(cut(X, y, w), None, None)
    drawn = draw(batches, _columns_of_targets, 0)
    table = EncodedTable(batches, TableEncoder().fit(drawn.X), _columns_of_targets, drawn)
    mean = np.average(y, weights=w)
    np.testing.assert_allclose(table.means, mean, rtol=1e-12)
    np.testing.assert_allclose(table.scales, np.sqrt(np.average((y - mean) ** 2, weights=w)))
    rows, Y, weight = (np.concatenate(part) for part in zip(*table, strict=True))
    assert rows.shape == Y.shape == (1000, 1)
    np.testing.assert_allclose(np.average(Y[:, 0], weights=w), 0, atol=1e-12)
    np.testing.assert_allclose(weight[w > 0].mean(), 1)
    assert drawn.n_used == np.count_nonzero(w)
    assert (drawn.weight > 0).all()


def test_the_largest_targets_do_not_overflow():
    X, y = np.zeros((20, 1)), np.r_[np.full(10, 1e308), np.full(10, -1e308)]
    drawn = drawn_of(X, y, rows=7)
    assert np.isfinite([drawn.mean, drawn.squares]).all()
    np.testing.assert_allclose(np.sqrt(drawn.squares / drawn.total) * drawn.largest, 1e308)


def test_frames_sparse_rows_and_text_are_put_together():
    frames = [pd.DataFrame({"a": [1.0], "b": ["x"]}), pd.DataFrame({"b": ["y"], "a": [2.0]})]
    assert stack_tables(frames).a.tolist() == [1.0, 2.0]
    mixed = stack_tables([np.ones((1, 2)), np.array([[1.5, "x"]], dtype=object)])
    assert mixed.tolist() == [[1.0, 1.0], [1.5, "x"]]
    assert stack_tables([sparse.eye(2).tocsr(), sparse.eye(2).tocsr()]).shape == (4, 2)
    with pytest.raises(ValueError, match="columns of a batch are not those of the first"):
        stack_tables([frames[0], frames[0].rename(columns={"a": "c"})])
    with pytest.raises(ValueError, match="3 features, but earlier batches had 2"):
        stack_tables([np.ones((1, 2)), np.ones((1, 3))])


# ---- fits


def test_a_source_of_few_rows_is_fitted_as_one_array():
    X, y = wave(150)
    whole = KernelRegressor(cv=2, random_state=3).fit(X[:, [0]], y)
    cuts = KernelRegressor(cv=2, random_state=3).fit(cut(X, y, rows=40))
    np.testing.assert_allclose(cuts.predict(X), whole.predict(X), rtol=0.05)


@pytest.mark.usefixtures("drawn_200")
@pytest.mark.parametrize("budget", [None, 1e-9], ids=["whole", "features"])
def test_all_rows_of_a_source_are_fitted_to(budget, tmp_path):
    X, y = wave()
    model = KernelRegressor(budget, cv=2, random_state=0).fit(cut(X, y))
    told = str(model.report_)
    assert "200 rows drawn at random from 600" in told
    assert (
        "Model: the whole kernel on 600 rows" if budget is None else "Model: 50 features"
    ) in told
    assert budget is not None or len(model.model_.X_fit_) == 600
    new, truth = wave(seed=1)
    mean, std = model.predict(new, return_std=True)
    assert np.sqrt(np.mean((mean - truth) ** 2)) < 0.12
    assert 0.8 < np.mean(np.abs(mean - truth) < 1.96 * std) < 0.99  # 200 rows say it
    parts = list(model.predict([new[:100], new[100:]], return_std=True))
    np.testing.assert_allclose(np.concatenate([part[0] for part in parts]), mean)
    np.testing.assert_allclose(model.score(cut(new, truth)), model.score(new, truth))
    model.save(tmp_path / "model.gzk")
    np.testing.assert_allclose(load(tmp_path / "model.gzk").predict(new), mean)


@pytest.mark.usefixtures("drawn_200")
def test_centres_are_fitted_in_passes(monkeypatch):
    for name in ("FEWEST_CENTERS", "MOST_CENTERS"):
        monkeypatch.setattr(form, name, 40)
    X, y = wave()
    monkeypatch.setattr(Trials, "seconds_of", lambda *_: 1.0)
    model = KernelRegressor(0.5, cv=2, random_state=0).fit(cut(X, y))
    assert len(model.model_.X_fit_) == 40
    assert model.score(X, y) > 0.97


@pytest.mark.usefixtures("drawn_200")
def test_an_array_on_disk_is_read_in_slices(tmp_path, monkeypatch):
    X, y = wave()
    np.save(tmp_path / "X.npy", X)
    on_disk = np.load(tmp_path / "X.npy", mmap_mode="r")
    monkeypatch.setattr(table_passes, "SLICE_VALUES", 128)
    model = KernelRegressor(1e-9, cv=2, random_state=0).fit(on_disk, y)
    assert "drawn at random from 600" in str(model.report_)
    np.testing.assert_allclose(model.predict(on_disk), model.predict(X))
    mean, std = model.predict(on_disk, return_std=True)
    assert mean.shape == std.shape == (600,)


@pytest.mark.usefixtures("drawn_200")
def test_dask_collections_are_fitted_and_predicted():
    da = pytest.importorskip("dask.array")
    X, y = wave()
    lazy, targets = da.from_array(X, chunks=(150, 1)), da.from_array(y, chunks=150)
    model = KernelRegressor(1e-9, cv=2, random_state=0).fit(lazy, targets)
    mean, std = model.predict(lazy, return_std=True)
    there = model.predict(X, return_std=True)
    np.testing.assert_allclose(mean.compute(), there[0])
    np.testing.assert_allclose(std.compute(), there[1])
    np.testing.assert_allclose(model.score(lazy, targets), model.score(X, y))


@pytest.mark.usefixtures("drawn_200")
def test_a_classifier_knows_the_labels_of_all_rows():
    X, y = wave()
    labels = np.where(y > 5, "high", "low").astype(object)
    labels[-1] = "rare"
    model = KernelClassifier(1e-9, cv=2, random_state=0).fit(cut(X, labels))
    assert model.classes_.tolist() == ["high", "low", "rare"]
    assert model.score(cut(X, labels)) == pytest.approx(model.score(X, labels))
    assert model.score(X, labels) > 0.9
    (shares,) = model.predict_proba([X])
    np.testing.assert_allclose(shares, model.predict_proba(X))
    (found,) = model.predict([X])
    assert (found == model.predict(X)).all()


@pytest.mark.usefixtures("drawn_200")
def test_frames_in_batches_may_have_text_and_gaps():
    X, y = wave()
    frame = pd.DataFrame({"x": X[:, 0], "kind": np.where(X[:, 0] > 0, "up", "down"), "y": y})
    frame.loc[::7, "x"] = None
    parts = [frame.iloc[i : i + 100] for i in range(0, 600, 100)]
    model = KernelRegressor(1e-9, cv=2, random_state=0)
    model.fit([(part[["x", "kind"]], part.y) for part in parts])
    assert model.feature_names_in_.tolist() == ["x", "kind"]
    assert model.score(frame[["x", "kind"]], frame.y) > 0.5


# ---- near rows of sources


def streets(n=1500, seed=0):
    """Rows of a function that changes within the distance of a few of them, and a category with a rare level."""
    rng = np.random.default_rng(seed)
    kinds = rng.choice(list("uvwxyz"), n)
    kinds[101:103] = "rare"  # of which no row is drawn
    frame = pd.DataFrame({"x": rng.uniform(0, 1, n), "kind": kinds})
    y = np.sin(60 * frame.x) + (frame.kind == "u") + 0.1 * rng.standard_normal(n)
    return frame, np.asarray(y)


def near(**parameters):
    return KernelRegressor(
        form="near", n_components=30, kernel="matern", random_state=0, **parameters
    )


@pytest.mark.usefixtures("drawn_200")
@pytest.mark.filterwarnings("ignore:column 'kind' has levels that the fit did not see")
@pytest.mark.parametrize("weighted", [False, True])
def test_near_rows_of_a_source_are_all_of_its_rows(weighted, tmp_path, monkeypatch):
    monkeypatch.setattr(near_lengths, "BLOCKS", 25)
    monkeypatch.setattr(near_form, "ROWS_FOR_SMOOTH", 1000)
    monkeypatch.setattr(near_kernel_ridge, "SMOOTH_ROWS", 200)
    X, y = streets()
    weight = np.arange(1500) % 4 if weighted else np.ones(1500)
    arrays = (X, y, weight) if weighted else (X, y)
    batches = [tuple(a[i : i + 400] for a in arrays) for i in range(0, 1500, 400)]
    model, whole = near().fit(batches), near().fit(X, y, weight if weighted else None)
    used = np.count_nonzero(weight)
    assert model.model_.X_fit_.shape[0] in (used, used - 200)  # without those of a smooth part
    assert model.model_.X_fit_.numbers.dtype == np.float32
    assert model.model_.X_fit_.codes.dtype == np.int8
    assert model.model_.X_fit_.codes.min() == -1
    assert max(candidate.n_rows for candidate in model.report_.candidates) == used - used // 5
    new, truth = streets(seed=1)
    errors = [np.std(fitted.predict(new) - truth) for fitted in (model, whole)]
    assert errors[0] < 1.05 * errors[1] < 0.16
    model.save(tmp_path / "model.gzk")
    np.testing.assert_array_equal(load(tmp_path / "model.gzk").predict(new), model.predict(new))


@pytest.fixture
def _few_in_memory(monkeypatch):
    monkeypatch.setattr(near_lengths, "BLOCKS", 25)
    monkeypatch.setattr(near_form, "ROWS_FOR_SMOOTH", 1000)
    monkeypatch.setattr(near_kernel_ridge, "SMOOTH_ROWS", 200)
    monkeypatch.setattr(coded, "PART", 300)


@pytest.mark.usefixtures("drawn_200", "_few_in_memory")
@pytest.mark.filterwarnings("ignore:column 'kind' has levels that the fit did not see")
@pytest.mark.parametrize("weighted", [False, True])
def test_rows_in_a_folder_predict_the_same(weighted, tmp_path):
    X, y = streets()
    arrays = (X, y, np.arange(1500) % 4) if weighted else (X, y)
    batches = [tuple(a[i : i + 400] for a in arrays) for i in range(0, 1500, 400)]
    model, mapped = (near(temp_folder=folder).fit(batches) for folder in (None, tmp_path))
    new, _ = streets(seed=1)
    wanted = model.predict(new, return_std=True)
    assert mapped.model_.X_fit_.folder == tmp_path
    np.testing.assert_array_equal(mapped.predict(new, return_std=True), wanted)
    assert not [*tmp_path.iterdir()]
    mapped.save(tmp_path / "model.gzk")
    for again in (load(tmp_path / "model.gzk"), pickle.loads(pickle.dumps(mapped))):
        np.testing.assert_array_equal(again.predict(new, return_std=True), wanted)
        assert again.model_.X_fit_.folder is None
    assert load(tmp_path / "model.gzk").temp_folder is None


@pytest.mark.usefixtures("drawn_200")
@pytest.mark.parametrize("error", [KeyboardInterrupt(), FileNotFoundError("the source broke")])
def test_nothing_stays_in_the_folder_after_an_error(error, tmp_path, monkeypatch):
    written = []

    def in_folder(folder):
        written.append(temporary_file(folder))
        return written[-1]

    def broken(of, X, *others):
        if len(written) > 1 and os.fstat(written[-1].fileno()).st_size:
            raise error
        return encoded(of, X, *others)

    encoded, temporary_file = EncodedTable.encoded, coded.temporary_file
    monkeypatch.setattr(EncodedTable, "encoded", broken)
    monkeypatch.setattr(coded, "temporary_file", in_folder)
    monkeypatch.setattr(table_learner, "temporary_file", in_folder)
    with pytest.raises(type(error)) as raised:
        near(temp_folder=tmp_path).fit(cut(*wave()))
    assert raised.value is error
    assert written[-1].closed
    assert not [*tmp_path.iterdir()]


def test_a_folder_that_takes_no_rows_is_named(tmp_path, monkeypatch):
    with pytest.raises(FileNotFoundError, match=r"temp_folder='.*none' takes no .*; name another"):
        near(temp_folder=tmp_path / "none").fit(*wave())
    read_only = tmp_path / "read_only"
    read_only.mkdir(0o500)
    if not os.access(read_only, os.W_OK):  # of root it is none
        with pytest.raises(PermissionError, match=r"temp_folder=.*read_only' takes no rows"):
            near(temp_folder=read_only).fit(*wave())

    class Full:
        data = property(lambda _: os.write(os.open("/dev/full", os.O_WRONLY), b"row"))

    with pytest.raises(OSError, match=r"temp_folder='.*' takes no rows \(No space left on device"):
        coded.mapped([Full()], tmp_path)
    full = os.fdopen(os.open("/dev/full", os.O_RDWR), "r+b")  # which writes what is small later
    monkeypatch.setattr(coded, "temporary_file", lambda _: full)
    with pytest.raises(OSError, match=r"temp_folder='.*' takes no rows \(No space left on device"):
        coded.mapped([np.zeros(3)], tmp_path)


def test_a_number_is_no_folder():
    with pytest.raises(TypeError, match="temp_folder=True is no path; name a folder"):
        near(temp_folder=True).fit(*wave(20))


@pytest.mark.usefixtures("drawn_200")
def test_an_array_on_disk_has_near_rows(tmp_path):
    X, y = wave()
    np.save(tmp_path / "X.npy", X)
    model = near().fit(np.load(tmp_path / "X.npy", mmap_mode="r"), y)
    assert model.model_.X_fit_.shape == (600, 1)
    assert model.score(X, y) > 0.95
    with pytest.raises(ValueError, match="max_memory"):
        near(max_memory=1000).fit(cut(X, y))


@pytest.mark.usefixtures("drawn_200")
@pytest.mark.parametrize("n_drawn", [200, 40])  # of 40 hardly any has a copy among them
def test_copies_of_a_source_are_held_out_together(n_drawn, monkeypatch):
    monkeypatch.setattr(table_passes, "DRAWN_ROWS", n_drawn)
    X, noise = wave(150)[0], np.random.default_rng(0).standard_normal(150)
    order = np.random.default_rng(1).permutation(np.repeat(np.arange(150), 4))
    model = near().fit(cut(X[order], (3 * X[:, 0] + noise)[order]))
    near_ones = [c for c in model.report_.candidates if "near rows" in c.name]
    assert min(candidate.error for candidate in near_ones) > 0.2


# ---- what is refused


class Changing:
    """Batches that are others once all of them were read."""

    def __init__(self, batches, later):
        self.batches, self.later = batches, later

    def __iter__(self):
        yield from self.batches
        self.batches = self.later


@pytest.mark.usefixtures("drawn_200")
def test_rows_that_change_between_passes_are_noticed():
    X, y = wave()
    with pytest.raises(ValueError, match="600 rows in the first pass and 500 in a later one"):
        KernelRegressor(1e-9, cv=2, random_state=0).fit(Changing(cut(X, y), cut(X, y)[1:]))


@pytest.mark.parametrize(("given", "words"), [
    (range(0), "no batches with rows"),
    ((each for each in cut(*wave())), "iterator, which gives its rows once.*open_batches"),
    ([(np.ones((3, 1)), np.array([1.0, np.nan, 2.0]))], "batch 0.*y contains NaN"),
    ([np.ones((3, 1))], "y is None: the source must yield"),
    ([(np.ones((3, 1)), np.ones(3), np.zeros(3))], "all sample weights are zero"),
    ([(np.ones((3, 1)), np.ones(2))], "batch 0.*X has 3 rows, but y has 2"),
    ([(np.full((3, 1), np.inf), np.arange(3.0))], "infinity"),
    ([(np.ones((0, 1)), np.ones(0))], "no batches with rows"),
], ids=["empty", "iterator", "NaN in y", "no y", "no weight", "lengths", "infinity", "no rows"])  # fmt: skip
def test_wrong_sources_are_refused(given, words):
    model = KernelRegressor()
    with pytest.raises(ValueError, match=words):
        model.fit(given)
    assert not model.__sklearn_is_fitted__()


def test_groups_and_splitters_need_rows_in_memory():
    batches, cv = cut(*wave(20), rows=5), [(np.arange(10), np.arange(10, 20))]
    with pytest.raises(ValueError, match=r"groups needs all rows in order.*one array"):
        KernelRegressor().fit(batches, groups=np.arange(20))
    with pytest.raises(ValueError, match="a splitter as cv needs all rows in order"):
        KernelRegressor(cv=cv).fit(batches)
    with pytest.raises(ValueError, match="y was passed beside a source"):
        KernelRegressor().fit(batches, np.arange(20))


@pytest.mark.filterwarnings("ignore:KernelRegressor was fitted to one row")
def test_one_row_and_constant_targets_are_predicted_as_the_mean():
    one = KernelRegressor().fit([(np.ones((1, 2)), np.array([3.0]))])
    assert one.predict(np.ones((2, 2))).tolist() == [3.0, 3.0]
    constant = KernelRegressor().fit([(np.random.default_rng(0).random((9, 2)), np.full(9, 2.0))])
    assert constant.predict(np.ones((1, 2))) == 2.0
    assert "y is constant" in str(constant.report_)
    with pytest.raises(ValueError, match="y has one class"):
        KernelClassifier().fit([(np.ones((3, 1)), np.array(["a", "a", "a"]))])
