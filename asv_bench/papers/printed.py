"""The numbers that the two papers print, each table once. [G] Gegenbauer, [B] block paper.

For figures, which have no numbers, the claims are kept. docs/errata.md lists the errors.
"""

# [G] Table 2: mean squared error and seconds of ridge regression on 1,024 features.
REGRESSION_SETS = ("Elevation", "CO2", "Climate", "Protein")
REGRESSION: dict[str, tuple[tuple[float, float], ...]] = {
    "Nystrom": ((1.14, 3.81), (0.533, 8.17), (3.14, 12.0), (18.9, 2.85)),
    "Fourier": ((1.30, 2.10), (0.548, 4.73), (3.15, 6.93), (19.8, 1.66)),
    "FastFood": ((1.35, 7.79), (0.551, 17.3), (3.16, 26.3), (19.8, 4.94)),
    "Maclaurin": ((1.90, 1.07), (0.593, 2.38), (3.18, 3.55), (25.9, 1.05)),
    "PolySketch": ((1.56, 7.65), (0.590, 16.4), (3.15, 23.5), (26.9, 4.96)),
    "Gegenbauer": ((1.15, 1.71), (0.532, 3.49), (3.13, 5.41), (21.0, 9.72)),
}

# [G] Table 3: objective of k-means on 512 features.
CLUSTER_SETS = ("Abalone", "Pendigits", "Mushroom", "Magic", "Statlog", "Connect-4")
CLUSTERS: dict[str, tuple[float, ...]] = {
    "Nystrom": (0.38, 0.42, 0.71, 0.64, 0.23, 0.61),
    "Fourier": (0.38, 0.43, 0.72, 0.66, 0.24, 0.81),
    "FastFood": (0.43, 0.46, 0.74, 0.67, 0.24, 0.83),
    "Maclaurin": (0.43, 0.46, 0.72, 0.73, 0.23, 0.90),
    "PolySketch": (0.35, 0.45, 0.67, 0.66, 0.21, 0.82),
    "Gegenbauer": (0.35, 0.40, 0.71, 0.59, 0.21, 0.78),
}

# [B] Table 1: (shuffled, normalised) -> k -> for faces, natural images, genes: W and p.
SHAPIRO_SETS = ("Faces", "Natural images", "Genes")
SHAPIRO: dict[tuple[bool, bool], dict[int, tuple[tuple[float, float], ...]]] = {
    (False, False): {
        200: ((0.91, 1.3e-7), (0.98, 0.003), (0.98, 0.003)),
        1000: ((0.87, 2.2e-16), (0.99, 1.93e-6), (0.95, 2.2e-16)),
    },
    (True, False): {
        200: ((0.99, 0.552), (0.99, 0.571), (0.98, 0.010)),
        1000: ((0.99, 0.590), (0.99, 0.800), (0.95, 2.2e-16)),
    },
    (True, True): {
        200: ((0.99, 0.582), (0.99, 0.820), (0.99, 0.783)),
        1000: ((0.99, 0.544), (0.99, 0.512), (0.99, 1.89e-6)),
    },
    (False, True): {
        200: ((0.96, 1.09e-5), (0.96, 0.008), (0.98, 0.037)),
        1000: ((0.93, 2.2e-16), (0.99, 1.93e-6), (0.98, 2.82e-11)),
    },
}

# [B] Table 2: D -> how many times faster than a dense projection, for k = 1,000 to 5,000.
PROJECTION_WIDTHS = (1000, 2000, 3000, 4000, 5000)
PROJECTION: dict[int, tuple[float, ...]] = {
    5_000: (23.9, 40.0, 65.2, 74.1, 100.0),
    10_000: (32.3, 58.8, 93.9, 120.6, 150.0),
    100_000: (106.0, 193.6, 316.0, 405.0, 462.7),
    440_000: (142.9, 265.9, 389.1, 559.7, 672.0),
    260_000: (264.0, 408.3, 768.0, 941.6, 1226.6),
    17_500: (67.1, 123.3, 203.7, 241.6, 331.0),
}

# [B] Table 3: D -> how many times faster than random kitchen sinks: block features, Fastfood.
FEATURE_WIDTHS = (1_000, 5_000, 10_000, 50_000, 100_000, 200_000)
FEATURES: dict[int, tuple[tuple[float, ...], tuple[float, ...]]] = {
    5_000: ((8.9, 45.0, 44.6, 48.3, 48.8, 52.8), (2.6, 12.0, 13.3, 17.9, 20.5, 21.7)),
    10_000: ((9.5, 50.6, 95.5, 109.3, 109.4, 109.4), (2.4, 10.0, 21.8, 32.6, 41.3, 40.3)),
    100_000: ((9.2, 50.6, 95.2, 602.0, 1300.0, 1139.0), (2.7, 13.6, 29.3, 162.1, 352.8, 355.2)),
    440_000: ((13.4, 72.1, 153.2, 767.8, 1585.0, 3361.0), (2.6, 12.6, 28.9, 141.9, 267.7, 554.7)),
    260_000: (
        (32.3, 168.5, 432.6, 2800.0, 4943.0, 11716.0),
        (3.2, 16.4, 32.7, 175.7, 345.6, 794.5),
    ),
    17_500: ((6.5, 31.3, 65.1, 63.5, 66.5, 66.1), (0.6, 3.0, 6.1, 15.7, 16.1, 16.0)),
}

# [B] Table 4: accuracy in per cent, of CENSUS the error; 1,000, 2,000 and 3,000 features.
MACHINE_WIDTHS = (1000, 2000, 3000)
MACHINE_SETS = ("ADULT", "CIFAR-10", "CENSUS")
MACHINES: dict[str, tuple[tuple[float, ...], ...]] = {
    "block": ((59.4, 62.2, 64.5), (75.9, 75.8, 76.3), (3.1, 2.9, 2.8)),
    "Fourier": ((58.6, 62.0, 63.7), (75.1, 76.2, 76.2), (2.9, 2.8, 2.8)),
    "FastFood": ((59.1, 62.2, 64.3), (75.1, 75.6, 75.7), (3.1, 2.7, 2.8)),
    "SVM with RBF": ((64.7,), (76.3,), (1.1,)),
}

# The claims that the papers make about their figures.
FIGURES = {
    "gegenbauer fig1": "a proper d approximates better than the Taylor series",
    "block fig1": "shuffling makes correlations much lighter (genes: light before and after)",
    "block fig2": "errors close to those of dense matrices; on genes higher for the kernel",
}
