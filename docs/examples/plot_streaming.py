"""
A file larger than memory, and a fit that is killed
===================================================

Every learner takes a file in batches. Its memory holds one batch, tiles of its features, and p by p
sums for p features; the number of rows does not matter. The file here has only some tens of MB, so
that the example is quick. The memory of the fit would be the same with a terabyte. The second part
kills a fit in the middle, and resumes it from its checkpoint.
"""

import tempfile
import threading
import time
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from gzkcore import Checkpoint, Gaussian, GegenbauerFeatures, RandomFeatureRidge, open_batches

# %%
# **A file, written in pieces**: 600,000 rows of eight columns and a target, generated here.

folder = tempfile.TemporaryDirectory()
path = Path(folder.name, "rows.parquet")
rng = np.random.default_rng(0)
names = [f"x{i}" for i in range(8)]
weights = np.linspace(0.8, 0.1, 8)
schema = pa.schema([(name, pa.float32()) for name in [*names, "y"]])
with pq.ParquetWriter(path, schema) as writer:
    for _ in range(12):
        X = rng.standard_normal((50_000, 8), dtype=np.float32)
        y = np.sin(X @ weights) + 0.1 * rng.standard_normal(len(X))
        writer.write_table(pa.table([*X.T, y.astype(np.float32)], schema=schema))
print(f"{path.stat().st_size / 1e6:.0f} MB, {pq.ParquetFile(path).metadata.num_rows:,} rows")

# %%
# **Memory, watched from beside.** A thread notes every few milliseconds how much memory the
# process holds (Linux tells in ``/proc``; elsewhere only the peak is known).


def held():
    """Return the megabytes that this process holds."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        import resource

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    return pages * 4096 / 1e6


BEFORE = held()


class Watch:
    """Memory over time, for as long as the `with` lasts, above what was held before all fits."""

    def __enter__(self):
        self.start, self.ended = time.perf_counter(), threading.Event()
        self.seconds, self.megabytes = [], []
        self.thread = threading.Thread(target=self._look)
        self.thread.start()
        return self

    def _look(self):
        while not self.ended.wait(0.01):
            self.seconds.append(time.perf_counter() - self.start)
            self.megabytes.append(held() - BEFORE)

    def __exit__(self, *_):
        self.ended.set()
        self.thread.join()


# %%
# **The fit.** ``radius`` and a numeric gamma say beforehand all that the features want to know;
# without them the file would be read once or twice more. 512 features of all rows at once would
# be 1.2 GB in float32.

P = 512
features = GegenbauerFeatures(Gaussian(gamma=0.03), P, radius=8.0, random_state=0)
rows = open_batches(path, target="y", dtype="float32", batch_rows=25_000)
with Watch() as watch:
    model = RandomFeatureRidge(features, alpha=1e-3).fit(rows)
n = 600_000
print(f"{watch.seconds[-1]:.1f} s, at most {max(watch.megabytes):.0f} MB more than before")
print(f"features of all rows {n * P * 4 / 1e6:,.0f} MB, sums {P * P * 8 / 1e6:.1f} MB a thread")
print(f"R² on the same file: {model.score(rows):.4f} (noise allows {1 - 0.01 / np.var(y):.4f})")

# %%
# **A kill in the middle.** The source below breaks off after the 14th of 24 batches. With a
# checkpoint, the same call goes on: rows that were done are read and compared by their hash,
# and their features are not made again.


class Broken:
    """A source that fails after some batches, as power does."""

    def __init__(self, rows, after):
        self.rows, self.after = rows, after

    def __iter__(self):
        for number, batch in enumerate(self.rows):
            if number == self.after:
                raise KeyboardInterrupt
            yield batch


saved = Checkpoint(Path(folder.name, "run.gzk"), seconds=0.5)
again = RandomFeatureRidge(features, alpha=1e-3)
start = time.perf_counter()
try:
    again.fit(Broken(rows, after=14), checkpoint=saved)
except KeyboardInterrupt:
    size = Path(saved.path).stat().st_size / 1e6
    print(f"killed after {time.perf_counter() - start:.1f} s; the checkpoint has {size:.1f} MB")
with Watch() as second:
    again.fit(rows, checkpoint=saved)
print(f"resumed and done in {second.seconds[-1]:.1f} s")
print(f"the same coefficients, to the last bit: {np.array_equal(again.coef_, model.coef_)}")
print(f"the checkpoint is gone: {not Path(saved.path).exists()}")

# %%
# **The picture.** Memory rises to what batches, tiles and sums need, and stays there, however
# many rows follow. For a file as small as this one that is more than the file.

figure, ax = plt.subplots(figsize=(8, 4.4), layout="constrained")
ax.plot(watch.seconds, watch.megabytes, label="one fit")
ax.plot(second.seconds, second.megabytes, label="the rest of a killed fit")
ax.axhline(n * P * 4 / 1e6, color="black", linestyle="--", label="features of all rows")
ax.set_yscale("symlog", linthresh=10)
ax.set_ylim(0, 5000)
ax.set_yticks([0, 10, 100, 1000], ["0", "10", "100", "1,000"])
ax.set_xlabel("time of the fit, s")
ax.set_ylabel("memory over that before the fits, MB")
figure.legend(loc="outside lower center", ncols=3, frameon=False)
folder.cleanup()
plt.show()
