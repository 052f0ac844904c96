"""Draw docs/iterations.svg, the picture of docs/iterations.md: python docs/draw_iterations.py.

On the left the steps of conjugate gradients, predicted from exact eigenvalues and counted; on the
right the residual after each step, for features alone and with neighbours. A minute on one core.
"""

import math
from pathlib import Path

import numpy as np
from scipy.linalg import cho_factor, cho_solve, eigvalsh

from gzkcore import (
    Gaussian,
    GegenbauerFeatures,
    Matern,
    NystromFeatures,
    RandomFourierFeatures,
)
from gzkcore.solve.solve import conjugate_gradients
from gzkcore.theory import iterations_bound

TOL, ROWS, WIDTHS, ALPHAS, NEIGHBOURS = 1e-3, 1000, (64, 128, 256, 512), (0.01, 0.1, 1.0), 24
KERNELS = (Gaussian(gamma=20.0), Matern(1.5, 0.3))
COLORS = {
    "Fourier": "#c8663c",
    "Nystrom": "#2f6fa8",
    "Gegenbauer": "#3a8f5a",
    "and neighbours": "#7a4fa3",
}
FEATURES = {
    "Fourier": RandomFourierFeatures,
    "Nystrom": NystromFeatures,
    "Gegenbauer": GegenbauerFeatures,
}
FONT = 'font-family="sans-serif" font-size="12"'
INK, FAINT = "#333333", "#dddddd"


# ---- what is drawn


class Dense:
    """A preconditioner that is stored and factored."""

    def __init__(self, P):
        self.factor = cho_factor(P, lower=True)

    def solve(self, R, columns):
        """Return P^-1 R."""
        return cho_solve(self.factor, R)


def points(n):
    """Return points of the sphere, and waves with noise there."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 3))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    y = np.sin(9 * X[:, 0]) * np.cos(7 * X[:, 1]) + np.sin(20 * X[:, 1]) / 2
    return X, y + 0.3 * rng.standard_normal(n)


def sparse_factor(S, X):
    """Return G with G^T G near S^-1: its rows know their nearest rows before."""
    G = np.zeros_like(S)
    for i in range(len(S)):
        near = np.argsort(np.linalg.norm(X[:i] - X[i], axis=1))[:NEIGHBOURS]
        here = np.append(near, i)
        g = np.linalg.solve(S[np.ix_(here, here)], np.eye(len(here))[-1])
        G[i, here] = g / math.sqrt(g[-1])
    return G


def with_neighbours(K, Z, alpha, X):
    """Return Z Z^T + (G^T G)^-1."""
    G = sparse_factor(K - Z @ Z.T + alpha * np.eye(len(K)), X)
    inverse = np.linalg.inv(G)
    return Z @ Z.T + inverse @ inverse.T


def solve(K, P, alpha, y):
    """Return the predicted number of steps, the counted one, and the residuals."""
    found = conjugate_gradients(
        lambda V: K @ V, y[:, None], [alpha], preconditioner=Dense(P), tol=TOL, max_iter=5000
    )
    ratios = eigvalsh(K + alpha * np.eye(len(K)), P)
    residuals = [1.0, *(float(step[0]) for step in found.history)]
    return iterations_bound(ratios[-1] / ratios[0], TOL), int(found.n_iter[0]), residuals


def counted():
    """Yield (what, predicted, counted) for every map, kernel, width and alpha."""
    X, y = points(ROWS)
    for kernel in KERNELS:
        K = kernel(X)
        for name, features in FEATURES.items():
            for width in WIDTHS:
                Z = features(kernel, width, random_state=0).fit_transform(X)
                for alpha in ALPHAS:
                    yield name, *solve(K, Z @ Z.T + alpha * np.eye(ROWS), alpha, y)[:2]
                    if name == "Nystrom" and width == WIDTHS[0]:
                        P = with_neighbours(K, Z, alpha, X)
                        yield "and neighbours", *solve(K, P, alpha, y)[:2]


def decays():
    """Yield (what, rows, residuals) for growing numbers of rows."""
    kernel, alpha = KERNELS[1], 0.1
    for n in (500, 1000, 2000):
        X, y = points(n)
        K = kernel(X)
        Z = NystromFeatures(kernel, 64, random_state=0).fit_transform(X)
        yield "Nystrom", n, solve(K, Z @ Z.T + alpha * np.eye(n), alpha, y)[2]
        yield "and neighbours", n, solve(K, with_neighbours(K, Z, alpha, X), alpha, y)[2]


# ---- how


class Panel:
    """A rectangle with axes: x and y in, pixels out."""

    def __init__(self, left, right, x_range, y_range, log_x):
        self.left, self.right, self.top, self.bottom = left, right, 40, 300
        self.x_range, self.y_range, self.log_x = x_range, y_range, log_x
        self.lines = []

    def x(self, value):
        """Place a value along the x axis."""
        low, high = self.x_range
        share = math.log(value / low, high / low) if self.log_x else (value - low) / (high - low)
        return round(self.left + share * (self.right - self.left), 1)

    def y(self, value):
        """Place a value along the y axis, which is logarithmic."""
        low, high = self.y_range
        return round(self.bottom - math.log(value / low, high / low) * (self.bottom - self.top), 1)

    def text(self, x, y, words, anchor="middle", more=""):
        """Write words."""
        self.lines.append(f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}" {more}>{words}</text>')

    def axes(self, title, x_name, x_ticks, y_name, y_ticks):
        """Draw the grid, the ticks and the names."""
        for value in x_ticks:
            x = self.x(value)
            self.lines.append(f'<path d="M{x} {self.top}V{self.bottom}" stroke="{FAINT}"/>')
            self.text(x, self.bottom + 17, f"{value:,}")
        for value, words in y_ticks.items():
            y = self.y(value)
            self.lines.append(f'<path d="M{self.left} {y}H{self.right}" stroke="{FAINT}"/>')
            self.text(self.left - 6, y + 4, words, "end")
        self.text(self.left, self.top - 16, title, "start", 'font-weight="bold"')
        self.text((self.left + self.right) / 2, self.bottom + 37, x_name)
        x, y = self.left - 42, (self.top + self.bottom) / 2
        self.text(x, y, y_name, "middle", f'transform="rotate(-90 {x} {y:g})"')

    def curve(self, xs, ys, color, more=""):
        """Draw a line through points."""
        path = "L".join(f"{self.x(x)} {self.y(y)}" for x, y in zip(xs, ys, strict=True))
        self.lines.append(f'<path d="M{path}" fill="none" stroke="{color}" {more}/>')

    def dot(self, x, y, color):
        """Draw a dot."""
        self.lines.append(
            f'<circle cx="{self.x(x)}" cy="{self.y(y)}" r="4" fill="{color}" fill-opacity=".75"/>'
        )


def left_panel():
    """Draw the steps, predicted and counted."""
    ticks = (2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000)
    panel = Panel(60, 350, (1.6, 2000), (1.6, 2000), log_x=True)
    panel.axes(
        "Steps to a residual of 1/1,000", "predicted, from exact eigenvalues", ticks[::3],
        "counted", {value: f"{value:,}" for value in ticks[::3]},
    )  # fmt: skip
    panel.curve((1.6, 2000), (1.6, 2000), INK, 'stroke-dasharray="4 3"')
    for name, predicted, steps in sorted(counted(), key=lambda found: list(COLORS).index(found[0])):
        panel.dot(predicted, steps, COLORS[name])
    for row, (name, color) in enumerate(COLORS.items()):
        y = panel.top + 14 + 18 * row
        words = "Nystrom and neighbours" if name == "and neighbours" else name
        panel.lines.append(f'<circle cx="74" cy="{y - 4}" r="4" fill="{color}"/>')
        panel.text(84, y, words, "start")
    return panel.lines


def right_panel():
    """Draw the residual after each step, for growing numbers of rows."""
    panel = Panel(430, 710, (0, 45), (1e-3, 2), log_x=False)
    panel.axes(
        "More rows: 500, 1,000, 2,000", "step", (0, 10, 20, 30, 40), "residual",
        {1: "1", 0.1: "1/10", 0.01: "1/100", 0.001: "1/1,000"},
    )  # fmt: skip
    for name, n, residuals in decays():
        shown = [value for value in residuals if value >= TOL]
        last, end = residuals[len(shown) - 1], residuals[len(shown)]
        steps = len(shown) - 1 + math.log(last / TOL) / math.log(last / end)
        xs, ys = [*range(len(shown)), steps], [*shown, TOL]
        panel.curve(xs, ys, COLORS[name], f'stroke-width="{0.8 * math.sqrt(n / 500):.2g}"')
        if name == "Nystrom":
            panel.text(panel.x(steps) + 3, panel.y(TOL) - 8, f"{n:,}", "start")
    panel.text(panel.x(17), panel.y(0.9), "64 features", "start", f'fill="{COLORS["Nystrom"]}"')
    for words, height in ((f"and {NEIGHBOURS}", 0.0034), ("neighbours", 0.0023)):
        color = COLORS["and neighbours"]
        panel.text(panel.x(4), panel.y(height), words, "start", f'fill="{color}"')
    return panel.lines


def main():
    """Write the picture."""
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 730 350" {FONT} fill="{INK}">',
        "<title>Steps of conjugate gradients: predicted and counted</title>",
        '<rect width="730" height="350" fill="#ffffff"/>',
        *left_panel(),
        *right_panel(),
    ]
    picture = Path(__file__).with_name("iterations.svg")
    picture.write_text("\n".join([*lines, "</svg>", ""]), encoding="utf-8")


if __name__ == "__main__":
    main()
