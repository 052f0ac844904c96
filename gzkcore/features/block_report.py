"""Bias and variance of block Fourier features on given data, with advice."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import shapiro

from gzkcore._util.random import as_seed_sequence, generator
from gzkcore._util.typing import Data, Doubles, Rows, Seed
from gzkcore._util.validation import check_integer, dense
from gzkcore._util.warn import collected_warnings
from gzkcore._util.wording import counted
from gzkcore.kernels.base import Kernel

from .block import (
    Arrangement,
    BlockFourierFeatures,
    Mix,
    assign_blocks,
    cosine_moments,
    differences,
    most_blocks,
    project,
)
from .block_moments import energy_variance

__all__ = ["BlockReport", "block_report"]

# A bias of at most this, root mean square over pairs, is called small.
ACCEPTED = 0.01


@dataclass(frozen=True)
class BlockReport:
    """Bias and variance of block Fourier features on given data, with advice; `print` shows it.

    Attributes
    ----------
    kernel : Kernel
    n_features, block_size, n_blocks : int
    arrangement : str
    mix : str or None
    n_pairs, n_draws : int
        Pairs of rows, and arrangements drawn for each.
    kernel_mean : float
        Mean of k(x, y) over the pairs.
    bias, bias_rms : float
        Mean, and root mean square, of E z(x).z(y) - k(x, y) over the pairs.
    bias_interval : (float, float)
        The bias plus and minus two standard errors, over all pairs of rows and all arrangements.
    bias_formula : float
        Mean bias over the pairs by the second-order formula f'' Var / 2, where f is the kernel as a
        function of the energy of a block. Accurate if the bias is small.
    std, std_arrangement, std_independent : float
        Standard deviation of z(x).z(y) with one pass, over frequencies and arrangements; its part
        that is due to the arrangement; that of ordinary random Fourier features with as many
        frequencies.
    spread : float
        (M/m)^2 of Lemma 4.6, median over the pairs: the largest energy of a block over the
        smallest.
    effective_k : float
        (sum a)^2 / sum a^2 for the energies a of blocks, median over the pairs: at most n_blocks.
    shapiro_w, shapiro_p : float
        W and p of the Shapiro-Wilk test of the energies of the blocks of a pair, medians over the
        pairs (Table 1).
    normal_share : float
        Share of the pairs whose p is above 0.05.
    correlation_before, correlation_after : ndarray of shape (m, m)
        Absolute correlations between the first 50 coordinates before and after arranging
        (Figure 1).
    """

    kernel: Kernel
    n_features: int
    block_size: int
    n_blocks: int
    arrangement: str
    mix: str | None
    n_pairs: int
    n_draws: int
    kernel_mean: float
    bias: float
    bias_interval: tuple[float, float]
    bias_rms: float
    bias_formula: float
    std: float
    std_arrangement: float
    std_independent: float
    spread: float
    effective_k: float
    shapiro_w: float
    shapiro_p: float
    normal_share: float
    correlation_before: Doubles
    correlation_after: Doubles

    @property
    def advice(self) -> tuple[str, ...]:
        """Advice on what to change, as sentences."""
        sentences = []
        spiky = self.effective_k < 0.75 * self.n_blocks and self.kernel.rotation_invariant
        if self.n_blocks == 1:
            sentences.append("one block holds all coordinates: no bias, and plain random features")
        elif self.bias_rms <= ACCEPTED:
            sentences.append("the bias is small: take as many features as the error asks for")
        elif spiky and self.mix is None:
            sentences.append(
                "use mix='hadamard': the differences are in few coordinates, so that the blocks "
                "are unequal; it spreads them evenly"
            )
        else:
            wanted = math.ceil(self.block_size * self.bias_rms / ACCEPTED)
            if 2 * wanted <= self.n_features:
                sentences.append(
                    f"use block_size={wanted}, where the bias is about {ACCEPTED}; more features "
                    "don't lower it"
                )
            else:
                sentences.append(
                    "leave this method: no block size makes the bias small; use "
                    "GegenbauerFeatures, or random features of whole rows"
                )
        if self.std_arrangement > 0.5 * self.std_independent > 0:
            sentences.append(
                "the arrangement has a large part in the error: several passes, so n_components "
                f"well above {2 * self.n_blocks}, average it"
            )
        if self.kernel_mean < 1e-3 or self.kernel_mean > 0.999:
            sentences.append(
                "the kernel is nearly constant on these pairs: look at its scale first"
            )
        return tuple(sentences)

    def __str__(self) -> str:
        low, high = self.bias_interval
        mixed = f", mix={self.mix!r}" if self.mix else ""
        table = {
            "kernel, mean of the pairs": f"{self.kernel_mean:.4f}",
            "bias": f"{self.bias:+.4f}, {low:+.4f} to {high:+.4f}",
            "bias, root mean square": f"{self.bias_rms:.4f}",
            "bias, to second order": f"{self.bias_formula:+.4f}",
            "standard deviation, one pass": f"{self.std:.4f}",
            "  of the arrangement": f"{self.std_arrangement:.4f}",
            "  with whole frequencies": f"{self.std_independent:.4f}",
            "(M/m)^2 of Lemma 4.6": f"{self.spread:.3g}",
            "effective k": f"{self.effective_k:,.0f} of {self.n_blocks:,}",
            "Shapiro-Wilk, median": f"W = {self.shapiro_w:.3f}, p = {self.shapiro_p:.2g}",
            "  pairs with p > 0.05": f"{self.normal_share:.0%}",
            "|correlation| of neighbours": f"{_off_diagonal(self.correlation_before):.3f}",
            "  within blocks": f"{_off_diagonal(self.correlation_after):.3f}",
        }
        columns, blocks = counted(self.n_features, "column"), counted(self.n_blocks, "block")
        lines = [
            f"{self.kernel!r} on {columns}, {counted(self.n_pairs, 'pair')} of rows",
            f"{blocks} of at least {self.block_size}, {self.arrangement}{mixed}",
            "",
            *(f"{name:<30}{value}" for name, value in table.items()),
            "",
            *(f"- {line}" for line in self.advice),
        ]
        return "\n".join(lines)

    __repr__ = __str__

    def plot(self, axes: Any = None) -> Any:
        """Draw the correlations before and after arranging, as in Figure 1; needs matplotlib.

        Parameters
        ----------
        axes : two matplotlib axes, optional

        Returns
        -------
        the two axes
        """
        if axes is None:
            import matplotlib.pyplot as plt

            axes = plt.subplots(1, 2, figsize=(8, 4), layout="constrained")[1]
        shown = (("as they are", self.correlation_before), ("arranged", self.correlation_after))
        for ax, (title, matrix) in zip(axes, shown, strict=True):
            ax.imshow(matrix, cmap="Greys", vmin=0, vmax=1)
            ax.set_title(title)
        return axes


def block_report(
    X: Data,
    kernel: str | Kernel = "gaussian",
    *,
    block_size: int | Literal["auto"] = "auto",
    arrangement: Arrangement = "stratified",
    mix: Mix = None,
    n_pairs: int = 100,
    n_draws: int = 20,
    random_state: Seed = 0,
) -> BlockReport:
    """Report bias and variance of `BlockFourierFeatures` on these data, and what to change.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        At least two rows.
    kernel, block_size, arrangement, mix
        As for `BlockFourierFeatures`.
    n_pairs, n_draws : int, default=100 and 20
        How many pairs of rows are used, and how many arrangements are drawn, at least 2. That costs
        n_pairs n_draws D operations.
    random_state : int, RandomState, Generator or None, default=0

    Returns
    -------
    BlockReport

    Examples
    --------
    Rows that differ in 1 of 50 columns, so that the blocks are far from equal:

    >>> import numpy as np
    >>> from gzkcore import Gaussian, block_report
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((50, 5000)) * (rng.random((50, 5000)) < 0.01)
    >>> report = block_report(X, Gaussian(0.01))
    >>> bool(report.bias > 0.2), report.advice[0][:30]
    (True, "use mix='hadamard': the differ")
    >>> bool(abs(block_report(X, Gaussian(0.01), mix="hadamard").bias) < 0.03)
    True
    """
    n_pairs, n_draws = check_integer("n_pairs", n_pairs, 1), check_integer("n_draws", n_draws, 2)
    for_blocks, for_pairs, for_mix = map(generator, as_seed_sequence(random_state).spawn(3))
    features = BlockFourierFeatures(
        kernel, 2, block_size=block_size, arrangement=arrangement, mix=mix, random_state=for_mix
    )
    with collected_warnings():  # the report has them as advice
        features.fit(X)
    X = features._validate(X, reset=False)
    if X.shape[0] < 2:
        raise ValueError(
            "X has one row; pass two or more, since the report is about differences of rows"
        )
    dim = features.buckets_.shape[1]
    n_blocks = most_blocks(features.kernel_, dim, block_size)
    draws = [_Draw.of(dim, n_blocks, arrangement, for_blocks) for _ in range(n_draws)]
    pairs = _of_pairs(features, differences(X, n_pairs, for_pairs), draws)
    before, after = _correlations(X, draws[0].buckets)
    return BlockReport(
        kernel=features.kernel_,
        n_features=X.shape[1],
        block_size=min(int(draw.sizes.min()) for draw in draws),
        n_blocks=n_blocks,
        arrangement=arrangement,
        mix=mix,
        n_pairs=pairs.exact.size,
        n_draws=n_draws,
        **_summary(pairs),
        correlation_before=before,
        correlation_after=after,
    )


class _Draw(NamedTuple):
    """One arrangement: the block of each coordinate, and the sizes of the blocks."""

    buckets: NDArray[np.intp]
    sizes: NDArray[np.intp]

    @classmethod
    def of(cls, dim: int, n_blocks: int, rule: Arrangement, rng: np.random.Generator) -> "_Draw":
        """Draw an arrangement."""
        buckets = assign_blocks(dim, n_blocks, rule, rng)
        return cls(buckets, np.bincount(buckets, minlength=n_blocks))

    def energies(self, powers: Doubles) -> Doubles:
        """Return the estimates of the sum over all coordinates by each block, row by row."""
        sums = np.empty((len(powers), self.sizes.size))
        shares = (self.buckets.size / self.sizes)[self.buckets]
        project(powers, self.buckets[None].astype(np.int32), shares[None], sums)
        return sums


class _Pairs(NamedTuple):
    """Errors of each pair of rows, in arrays of shape (n_pairs,), except for `means`."""

    means: Doubles  # means of the estimate given the blocks, (n_pairs, n_draws)
    within: Doubles  # variance of the estimate given the blocks
    exact: Doubles  # k(x, y)
    independent: Doubles  # variance with whole frequencies
    formula: Doubles  # bias to second order
    spread: Doubles  # largest energy of a block over the smallest
    effective: Doubles  # k
    shapiro_w: Doubles
    shapiro_p: Doubles


def _of_pairs(
    features: BlockFourierFeatures, deltas: Iterable[Doubles], draws: list[_Draw]
) -> _Pairs:
    """Measure pairs of rows, a few at a time, with the blocks of each draw."""
    kernel = features.kernel_
    means: list[Doubles] = []
    rows: list[tuple[float, ...]] = []  # the other fields of each pair
    for delta in deltas:
        powers = np.abs(features._scaled(delta)) ** kernel.distance_power
        sums = np.array([draw.energies(powers) for draw in draws])
        once, variance = cosine_moments(kernel, sums)
        means.append(once.mean(axis=2).T)
        within = variance.mean(axis=(0, 2)) / sums.shape[2]
        rows += (
            (variance, *_whole(features, power, sums.shape[2]), *_inequality(energies))
            for power, energies, variance in zip(powers, sums[0], within, strict=True)
        )
    return _Pairs(np.concatenate(means), *np.array(rows).T)


def _whole(
    features: BlockFourierFeatures, powers: Doubles, n_blocks: int
) -> tuple[float, float, float]:
    """Return of one pair k, the variance with whole frequencies, and the second-order bias."""
    kernel, total = features.kernel_, powers.sum()
    step = 0.01 * total
    below, value, above = kernel.profile_of_sums(total + step * np.array([-1.0, 0.0, 1.0]))
    variance = float(cosine_moments(kernel, np.array(total))[1])
    curvature = (above - 2 * value + below) / step**2 if step else 0.0
    spread = n_blocks**2 * energy_variance(np.sqrt(powers), n_blocks, features.arrangement)
    return value, variance / n_blocks, curvature * spread / 2


def _inequality(energies: Doubles) -> tuple[float, float, float, float]:
    """Return (M/m)^2, the effective k, and Shapiro and Wilk's W and p of blocks' energies."""
    total, squares = energies.sum(), energies @ energies
    smallest = energies.min()
    spread = energies.max() / smallest if smallest > 0 else math.inf
    effective = total**2 / squares if squares else float(energies.size)
    if energies.size < 3 or np.ptp(energies) == 0:
        return spread, effective, math.nan, math.nan
    test = shapiro(energies[:5000])  # p is known for up to 5,000
    return spread, effective, float(test.statistic), float(test.pvalue)


def _summary(pairs: _Pairs) -> dict[str, Any]:
    """Return the fields of a report about all pairs."""
    off = pairs.means.mean(axis=1) - pairs.exact
    bias, n_draws = float(off.mean()), pairs.means.shape[1]
    of_draws = float(np.var((pairs.means - pairs.exact[:, None]).mean(axis=0), ddof=1)) / n_draws
    error = math.sqrt(of_draws + float(np.var(off)) / off.size)
    of_arrangement = float(np.mean(np.var(pairs.means, axis=1, ddof=1)))
    p = pairs.shapiro_p
    tested = np.isfinite(p) if np.isfinite(p).any() else slice(None)  # equal rows have no shape
    return {
        "kernel_mean": float(pairs.exact.mean()),
        "bias": bias,
        "bias_interval": (bias - 2 * error, bias + 2 * error),
        "bias_rms": float(np.sqrt(np.mean(off**2))),
        "bias_formula": float(pairs.formula.mean()),
        "std": math.sqrt(float(pairs.within.mean()) + of_arrangement),
        "std_arrangement": math.sqrt(of_arrangement),
        "std_independent": math.sqrt(float(pairs.independent.mean())),
        "spread": float(np.median(pairs.spread)),
        "effective_k": float(np.median(pairs.effective)),
        "shapiro_w": float(np.median(pairs.shapiro_w[tested])),
        "shapiro_p": float(np.median(p[tested])),
        "normal_share": float(np.mean(p[tested] > 0.05)),
    }


def _correlations(X: Rows, buckets: NDArray[np.intp]) -> tuple[Doubles, Doubles]:
    """Return |correlations| of the first 50 coordinates, in their order and in that of blocks."""
    arranged = np.argsort(buckets[buckets.size - X.shape[1] :], kind="stable")
    sample = X[: min(X.shape[0], 1000)]
    correlations = []
    for columns in (slice(0, 50), arranged[:50]):
        values = dense(sample[:, columns]).astype(np.float64)
        values -= values.mean(axis=0)
        norms = np.sqrt(np.einsum("ij,ij->j", values, values))
        values /= np.where(norms > 0, norms, 1.0)
        correlations.append(np.abs(values.T @ values))
    return correlations[0], correlations[1]


def _off_diagonal(matrix: Doubles) -> float:
    """Return the mean of a matrix without its diagonal."""
    n = len(matrix)
    return float((matrix.sum() - np.trace(matrix)) / (n * (n - 1))) if n > 1 else 0.0
