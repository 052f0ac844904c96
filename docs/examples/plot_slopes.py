"""
Slopes of the Earth, north and east
===================================

A function of the whole kernel has slopes everywhere, exactly, and they have standard deviations.
The example fits the elevation of the Earth in half of its cells of one degree, chosen at random,
and maps how steep it is in all of them. The other ways to a slope from scattered places interpolate
first, and take differences of what they made.
"""

import time

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import LogNorm
from scipy.interpolate import griddata

from gzkcore import KernelRidge, LatLonToSphere, Matern
from gzkcore.datasets import load

# %%
# **Data.** Cells of one degree, half of them given. The slopes to compare with are differences of
# all cells, over two of them: metres per kilometre, north and east.

try:
    data = load("elevation_1deg")
except FileNotFoundError:
    data = load("elevation")  # from NOAA, some 300 MB, once
places = np.column_stack([data.lat, data.lon]).astype(float)
metres = np.asarray(data.elevation_m, dtype=float)
given = np.random.default_rng(0).permutation(len(metres))[: len(metres) // 2]
latitudes = np.unique(places[:, 0])
KM = np.pi / 180 * 6371  # of a degree of a meridian


def differences(values):
    """Return differences of a map by kilometre, of shape (cells, 2)."""
    values = values.reshape(180, 360)
    around = np.roll(values, -1, axis=1) - np.roll(values, 1, axis=1)
    width = 2 * KM * np.cos(np.radians(latitudes))
    north = np.gradient(values, KM, axis=0)
    return np.column_stack([north.ravel(), (around / width[:, None]).ravel()])


measured = differences(metres)
inner = np.abs(places[:, 0]) < 80  # a degree of longitude is short beyond
print(f"{len(given):,} of {len(metres):,} cells; slopes have a root mean square of", end=" ")
print(f"{np.sqrt(np.mean(measured[inner] ** 2)):.2f} m/km")

# %%
# **Three ways.** Points of the sphere have three derivatives; ``LatLonToSphere().north_east``
# has the directions along which they are slopes per kilometre. The smoothness and the length of
# the kernel are those that predict elevation well.

sphere = LatLonToSphere()
X, ways = sphere.transform(places), sphere.north_east(places)
slopes = {}
start = time.perf_counter()
model = KernelRidge(Matern(nu=1.5, length_scale=0.05), alpha=0.03, fit_intercept=True)
model.fit(X[given], metres[given])
surface, slopes["whole kernel"] = model.predict(X, return_gradient=ways)
seconds = {"whole kernel": time.perf_counter() - start}
for method in ("linear", "nearest"):
    start = time.perf_counter()
    values = griddata(places[given], metres[given], places, method="nearest")
    if method == "linear":
        between = griddata(places[given], metres[given], places, method="linear")
        values = np.where(np.isnan(between), values, between)
    slopes[f"{method}, then differences"] = differences(values)
    seconds[f"{method}, then differences"] = time.perf_counter() - start
print(f"{'slopes':<26}{'error, m/km':>12}{'seconds':>9}")
for name, found in slopes.items():
    error = np.sqrt(np.mean((found - measured)[inner] ** 2))
    print(f"{name:<26}{error:>12.2f}{seconds[name]:>9.1f}")

# %%
# **How sure is it?** In every 60th cell. What is measured here is a mean over two cells, which
# varies less than the slope at a point; so more than 95 % are within 1.96 standard deviations.

few = np.flatnonzero(inner)[::60]
_, _, slope, std = model.predict(X[few], return_std=True, return_gradient=ways[few])
within = np.mean(np.abs(slope - measured[few]) < 1.96 * std)
print(f"standard deviation {std.min():.2f} to {std.max():.2f} m/km; {within:.1%} within 1.96 of it")

# %%
# **The map**: how steep the Earth is, and which way is up in the Andes and the trench beside them.

steep = np.hypot(*slopes["whole kernel"].T).reshape(180, 360)
figure, axes = plt.subplots(2, 1, figsize=(8, 9), layout="constrained", height_ratios=[1, 1.1])
extent = (-180, 180, -90, 90)
picture = axes[0].imshow(steep, origin="lower", extent=extent, norm=LogNorm(0.3, 30))
axes[0].set_title("How steep the Earth is, from half of its cells", loc="left")
axes[0].set_xticks(range(-180, 181, 60), ["180°", "120°W", "60°W", "0°", "60°E", "120°E", "180°"])
axes[0].set_yticks(range(-90, 91, 30), ["90°S", "60°S", "30°S", "0°", "30°N", "60°N", "90°N"])
bar = figure.colorbar(picture, ax=axes[0], label="metres per kilometre", shrink=0.8)
bar.set_ticks([0.3, 1, 3, 10, 30], labels=["0.3", "1", "3", "10", "30"])

window = (-90, -54, -38, -10)  # west, east, south, north
inside = (places[:, 1] > window[0]) & (places[:, 1] < window[1])
inside &= (places[:, 0] > window[2]) & (places[:, 0] < window[3])
picture = axes[1].imshow(
    surface.reshape(180, 360) / 1000, origin="lower", extent=extent, cmap="BrBG_r", vmin=-6, vmax=6
)
north, east = slopes["whole kernel"][inside].T
length = np.maximum(np.hypot(north, east), 1e-9) ** 0.5  # roots, so that plains have arrows too
axes[1].quiver(
    places[inside, 1], places[inside, 0], east / length, north / length, scale=120, width=0.0018
)
axes[1].set(xlim=window[:2], ylim=window[2:], aspect=1 / np.cos(np.radians(24)))
axes[1].set_xticks(range(-90, -50, 10), ["90°W", "80°W", "70°W", "60°W"])
axes[1].set_yticks(range(-30, 0, 10), ["30°S", "20°S", "10°S"])
axes[1].set_title("Uphill in the Andes", loc="left")
figure.colorbar(picture, ax=axes[1], label="elevation, km", shrink=0.8)
plt.show()
