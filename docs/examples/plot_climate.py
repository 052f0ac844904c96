"""
Climate in space and time
=========================

The temperature of the air depends on the place, a point of a sphere, and on the month, a
point of a circle. The product of a kernel of the place and a kernel of the month has one
lengthscale for each. :class:`gzkcore.ProductFeatures` keeps the products of columns that matter
most. They are compared with a kernel that has a single lengthscale, and with landmarks
(scikit-learn's Nystroem) for either kernel.

Whole places are held out for the test, with all their months: predicting July from June at the same
place would be too easy.
"""

import time

import matplotlib.pyplot as plt
import numpy as np
from sklearn.kernel_approximation import Nystroem

from gzkcore import Gaussian, LatLonToSphere, ProductFeatures, RandomFeatureRidgeCV
from gzkcore.datasets import load

# %%
# **Data**: means of the twelve months on a grid of 2.5 degrees. The poles are in the grid once
# for each longitude; one of each is enough.

data = load("climate_ncep_2p5deg")
one = (np.abs(data.lat) < 90) | (data.lon == data.lon.min())
degrees = np.column_stack([data.lat, data.lon]).astype(float)[one]
celsius = data.temp_c_x100[:, one].T / 100  # a row for each place, a column for each month
sphere = LatLonToSphere()


def rows(degrees, month):
    """Return places on the sphere and months, 0 to 12, on the circle: five columns."""
    angle = 2 * np.pi * np.broadcast_to(month, len(degrees)) / 12
    return np.column_stack([sphere.transform(degrees), np.cos(angle), np.sin(angle)])


order = np.random.default_rng(0).permutation(len(degrees))
places = {"test": order[: len(order) // 10], "train": order[len(order) // 10 :]}
X, y = {}, {}
for part, some in places.items():
    months = np.tile(np.arange(12), len(some))
    X[part] = rows(np.repeat(degrees[some], 12, axis=0), months)
    y[part] = celsius[some].ravel()
    print(f"{part}: {len(some):,} places, {len(y[part]):,} temperatures")

# %%
# **Scales.** The lengthscales of place and month are chosen once, on a part of the training
# rows. For the comparison with one lengthscale it is chosen likewise.

some = np.random.default_rng(1).choice(len(y["train"]), 12_000, replace=False)


def chosen(features, grid):
    """Return the entry of the grid with the least cross-validated error on some rows."""
    model = RandomFeatureRidgeCV(features, np.logspace(-6, 2, 9), kernel_grid=grid, cv=2)
    best = dict(model.fit(X["train"][some], y["train"][some]).best_params_)
    del best["alpha"]
    return best


parts = [(slice(0, 3), Gaussian(1.0)), (slice(3, 5), Gaussian(1.0))]
two = chosen(
    ProductFeatures(parts, 512),
    {"kernel0__gamma": [1.0, 3.0, 10.0], "kernel1__gamma": [0.003, 0.01, 0.03]},
)
single = chosen(Nystroem(n_components=512, random_state=0), {"gamma": [0.1, 0.3, 1.0, 3.0]})
print(f"place {two['kernel0__gamma']:g}, month {two['kernel1__gamma']:g}; one for all: {single}")

# %%
# **Error against width.** Since a product of Gaussians is a Gaussian of scaled columns,
# scikit-learn's Nystroem can have the very same kernel: scale the columns first.

parts = [
    (slice(0, 3), Gaussian(two["kernel0__gamma"])),
    (slice(3, 5), Gaussian(two["kernel1__gamma"])),
]
scale = np.sqrt(np.repeat([two["kernel0__gamma"], two["kernel1__gamma"]], [3, 2]))
plain = np.ones(5)
methods = {
    "ProductFeatures": (plain, lambda width: ProductFeatures(parts, width)),
    'ProductFeatures, basis="adapted"': (
        plain,
        lambda width: ProductFeatures(parts, width, basis="adapted"),
    ),
    "Nystroem, same kernel": (
        scale,
        lambda width: Nystroem(gamma=1.0, n_components=width, random_state=0),
    ),
    "Nystroem, one lengthscale": (
        plain,
        lambda width: Nystroem(**single, n_components=width, random_state=0),
    ),
}
WIDTHS = [64, 128, 256, 512]
less = np.random.default_rng(2).choice(len(y["train"]), 25_000, replace=False)
errors = {}
print(f"{'squared error, °C²':<34}" + "".join(f"{width:>8}" for width in WIDTHS) + "  seconds")
for name, (by, make) in methods.items():
    start, errors[name] = time.perf_counter(), []
    for width in WIDTHS:
        model = RandomFeatureRidgeCV(make(width), np.logspace(-6, 2, 17), cv=2)
        model.fit(X["train"][less] * by, y["train"][less])
        errors[name].append(np.mean((model.predict(X["test"] * by) - y["test"]) ** 2))
    seconds = time.perf_counter() - start
    print(f"{name:<34}" + "".join(f"{e:>8.2f}" for e in errors[name]) + f"{seconds:>9.1f}")

# %%
# The kernel makes the larger difference, the features a smaller one: landmarks with the same
# kernel do as well as products, or a little better. The products need no landmarks, draw
# nothing at random and certify their error; the adapted ones pay for where the data are with
# time.

model = RandomFeatureRidgeCV(ProductFeatures(parts, 1024), np.logspace(-6, 2, 17), cv=2)
model.fit(X["train"], y["train"])
error = np.mean((model.predict(X["test"]) - y["test"]) ** 2)
print(f"1,024 products, all {len(y['train']):,} rows: {error:.2f} °C²")

# %%
# **Maps** of the fitted surface, at the middle of January and of July.

latitude, longitude = np.arange(-89.0, 90, 2), np.arange(-179.0, 180, 2)
grid = np.stack(np.meshgrid(latitude, longitude, indexing="ij"), axis=-1).reshape(-1, 2)
figure, axes = plt.subplots(2, 1, figsize=(8, 7), layout="constrained", sharex=True)
for ax, month, title in ((axes[0], 0, "January"), (axes[1], 6, "July")):
    surface = model.predict(rows(grid, month)).reshape(len(latitude), len(longitude))
    picture = ax.imshow(
        surface, origin="lower", extent=(-180, 180, -90, 90), cmap="RdYlBu_r", vmin=-45, vmax=40
    )
    ax.set_title(f"Fitted temperature, {title}", loc="left")
    ax.set_xticks(range(-180, 181, 60), ["180°", "120°W", "60°W", "0°", "60°E", "120°E", "180°"])
    ax.set_yticks(range(-90, 91, 30), ["90°S", "60°S", "30°S", "0°", "30°N", "60°N", "90°N"])
figure.colorbar(picture, ax=axes, label="temperature, °C", shrink=0.6)

# %%
# **Time is continuous**: between the twelve months the curve is the model's. The places are of
# the test part, the nearest to these four; none of their months was seen.

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.6), layout="constrained")
moments = np.linspace(0, 11, 111)
wanted = {
    "Yakutsk": (62, 130), "Chicago": (42, -88), "Singapore": (1, 104), "Sydney": (-34, 151),
}  # fmt: skip
among = sphere.transform(degrees[places["test"]])
for name, where in wanted.items():
    nearest = places["test"][np.argmax(among @ sphere.transform([where])[0])]
    curve = model.predict(rows(np.repeat(degrees[[nearest]], len(moments), axis=0), moments))
    (line,) = left.plot(moments + 1, curve, label=f"near {name}")
    left.plot(np.arange(1, 13), celsius[nearest], "o", color=line.get_color())
left.set_xlabel("month")
left.set_xticks(range(1, 13))
left.set_ylabel("temperature, °C")
left.set_title("Unseen places: measured (dots), predicted (lines)", loc="left")
left.legend(frameon=False)
for (name, values), marker in zip(errors.items(), "os^D", strict=True):
    right.plot(WIDTHS, values, marker=marker, label=name)
right.set_xscale("log", base=2)
right.set_xticks(WIDTHS, WIDTHS)
right.set_yscale("log")
right.set_yticks([8, 10, 20, 40, 60], ["8", "10", "20", "40", "60"])
right.minorticks_off()
right.set_xlabel("number of features")
right.set_ylabel("squared error at unseen places, °C²")
right.set_title(f"{len(less):,} rows of the fit", loc="left")
right.legend(frameon=False)
plt.show()
