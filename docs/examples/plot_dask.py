"""
Dask: one task for each chunk
=============================

A Dask array is cut into chunks that may lie on many machines. A ridge regression needs only p by p
sums from each chunk, for p features. So one task makes the features of a chunk, tile by tile, and
adds up their products; a few more tasks merge the sums. The example runs on Dask's own threads, in
this process. With a ``distributed.Client`` in the first line the same code runs on a cluster.
"""

import time

import dask
import dask.array as da
import matplotlib.pyplot as plt
import numpy as np
from dask.diagnostics import Profiler

import gzkcore.features.dask
from gzkcore import Gaussian, GegenbauerFeatures, RandomFeatureRidge

dask.config.set(scheduler="threads")

# %%
# **A collection that isn't there yet**: 400,000 rows in 16 chunks, made when a task asks for
# them.

N, CHUNK, P = 400_000, 25_000, 384
X = da.random.default_rng(0).standard_normal((N, 6), chunks=(CHUNK, 6), dtype=np.float32)
noise = da.random.default_rng(1).standard_normal(N, chunks=CHUNK)
y = da.sin(X @ np.linspace(1, 0.2, 6)) + 0.1 * noise
print(X)
print(f"{X.npartitions} chunks, {X.nbytes / 1e6:.0f} MB in all")

# %%
# **Features, lazily.** Transforming a Dask array gives a Dask array; nothing is computed until
# a chunk is wanted. A learner doesn't need it: it would move p numbers for every row.

features = GegenbauerFeatures(Gaussian(gamma=0.15), P, radius=7.0, random_state=0)
fitted = gzkcore.features.dask.fit(features, X)
Z = fitted.transform(X)
print(f"not computed: {Z}")
print(f"{len(Z.__dask_graph__())} tasks for all chunks")
print(f"the first chunk alone: {Z.blocks[0].compute().shape}")

# %%
# **The regression.** ``fit`` takes the collections as they are. Dask's profiler notes which
# task ran when.

with Profiler() as profiler:
    start = time.perf_counter()
    model = RandomFeatureRidge(features, alpha=1.0).fit(X, y)
    seconds = time.perf_counter() - start
tasks = profiler.results
kinds = {"sums": "_reduce_chunk", "merges": "_merge"}
count = {
    name: sum(str(task.key).lstrip("('").startswith(key) for task in tasks)
    for name, key in kinds.items()
}
print(f"{seconds:.1f} s, {len(tasks)} tasks: {count['sums']} sums, {count['merges']} merges")
print(f"what travels for a chunk: {P * P * 4.5 / 1e6:.1f} MB of sums")
print(f"what doesn't: {CHUNK * P * 4 / 1e6:.0f} MB of features")

# %%
# **The same answer as from one array.** The rows are cut otherwise there, so the last digits
# may differ.

whole, target = dask.compute(X, y)
start = time.perf_counter()
alone = RandomFeatureRidge(features, alpha=1.0).fit(whole, target)
in_memory = time.perf_counter() - start
some = whole[:10_000]
difference = np.abs(model.predict(some) - alone.predict(some)).max()
print(f"largest difference of predictions {difference:.1e}; one array takes {in_memory:.1f} s")
predicted = model.predict(X)
print(f"predictions, lazily: {predicted}")
print(f"R² {model.score(X, y):.4f}")

# %%
# **The picture**: tasks on the threads, over time. In one process with few processors Dask wins
# no time, an array in memory is as fast. What it gives is rows that need not fit in memory, and
# more machines.

figure, ax = plt.subplots(figsize=(9, 3.4), layout="constrained")
workers = sorted({task.worker_id for task in tasks})
begin = min(task.start_time for task in tasks)
colors = {"sums of a chunk": "C0", "merge": "C3", "rows and targets": "0.7"}
for task in tasks:
    key = str(task.key).lstrip("('")
    kind = (
        "sums of a chunk" if key.startswith("_reduce_chunk")
        else "merge" if key.startswith("_merge") else "rows and targets"
    )  # fmt: skip
    ax.barh(
        workers.index(task.worker_id), task.end_time - task.start_time,
        left=task.start_time - begin, color=colors[kind], edgecolor="white", linewidth=0.5,
    )  # fmt: skip
for kind, color in colors.items():
    ax.bar(0, 0, color=color, label=kind)
ax.set_yticks(range(len(workers)), [f"thread {i + 1}" for i in range(len(workers))])
ax.set_xlim(0, None)
ax.set_xlabel("time, s")
ax.set_title(f"{len(tasks)} tasks for {X.npartitions} chunks", loc="left")
figure.legend(loc="outside lower center", ncols=3, frameon=False)
plt.show()
