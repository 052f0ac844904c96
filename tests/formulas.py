"""Every formula of `reference`: its mirror, the kernel below, the test of the two, the benchmark.

`table()` has a row for each. By rule the mirror of a formula is the function of its name in one of
the MODULES of its idea, the function of its name in the compiled module of the idea computes it,
`test_twins` compares the two, and the idea's benchmark times it. What follows no rule is listed
here, and `test_twins` checks that all of it exists, and that kernels are compiled and called.
`docs/write_formulas.py` makes a page of it.
"""

import importlib
from dataclasses import dataclass
from types import SimpleNamespace

from gzkcore import reference

# Idea -> the modules of gzkcore that have the mirrors of its formulas.
MODULES = {
    "adaptive": ["features.adaptive"],
    "block": ["features.block", "features.block_moments", "features.block_report", "features.normalize"],
    "cca": ["learn.cca"],
    "centers": ["solve.centers", "learn.kernel_ridge"],
    "cholesky": ["_util.linalg"],
    "directions": ["sphere.directions"],
    "fast_sums": [
        "kernels.fast_sums", "kernels.split", "sphere.transforms", "_util.nonuniform", "learn.series_ridge",
        "passes.exponential_sums",
    ],
    "fastfood": ["features.fastfood"],
    "fourier": ["features.fourier"],
    "gegenbauer": ["features.gegenbauer"],
    "gram": ["passes.gram", "passes.moments", "passes.clusters"],
    "hadamard": ["features.hadamard"],
    "harmonics": ["sphere.harmonics"],
    "kernel_ridge": ["learn.kernel_ridge", "learn.kernel_ridge_cv", "learn.kernel_ridge_classifier"],
    "kernels": ["kernels", "kernels.products", "kernels.radial"],
    "kmeans": ["learn.kmeans"],
    "learned": ["kernels.learned", "learn.agop"],
    "losses": ["solve.losses", "solve.newton", "learn.kernel_losses", "learn.kernel_quantile", "learn.kernel_logistic"],
    "maclaurin": ["features.maclaurin"],
    "metrics": ["metrics"],
    "near_rows": ["solve.neighbours", "learn.near_kernel_ridge"],
    "nystrom": ["features.nystrom"],
    "pca": ["learn.pca"],
    "polysketch": ["features.polysketch"],
    "preconditioners": ["solve.preconditioners", "solve.near_landmarks", "solve.neighbours"],
    "product": ["kernels.product", "features.product"],
    "products": ["kernels.products"],
    "projection": ["features.projection"],
    "ridge": ["learn.ridge", "learn.ridge_cv", "learn.ridge_classifier", "solve.wide"],
    "series": ["sphere.series", "kernels.radial", "kernels.truncation"],
    "sketch": ["features.sketch"],
    "solve": ["solve.solve"],
    "special": ["sphere.special"],
    "table": ["tabular.kernel_regressor", "tabular.kernel_classifier", "tabular.table_encoder"],
    "theory": ["theory"],
}  # fmt: skip

# Formula -> the compiled functions that compute it, other than by rule.
COMPILED = {
    "adaptive.monomial_features": ["product.product_features"],
    "block.block_energies": ["block.block_projection"],
    "block.block_matrix": ["block.block_projection"],
    "block.diagonal_of_product": ["block.block_projection"],
    "block.diagonal_sum": ["block.block_projection"],
    "block.energy_variance": ["variances.energy_variance"],
    "block.fast_fourier_features": ["block.block_fourier_features"],
    "block.fast_random_projection": ["block.block_projection"],
    "block.kernel_moments": ["variances.kernel_moments"],
    "block.projection_moments": ["variances.projection_moments"],
    "block.projection_variance": ["variances.projection_variance"],
    "block.repeated_fourier_features": ["block.block_fourier_features"],
    "cca.canonical_correlations": ["gram.add_moments", "gram.recentre"],
    "centers.center_ridge": ["products.kernel_product"],
    "centers.center_variance": ["products.kernel_matrix", "cholesky.solve_lower"],
    "cholesky.cholesky": ["cholesky.factor"],
    "cholesky.inverse_of": ["cholesky.invert"],
    "cholesky.solve_factored": ["cholesky.solve_lower"],
    "cholesky.solve_triangle": ["cholesky.solve_lower"],
    "directions.sobol_directions": ["directions.iid_directions"],
    "fast_sums.harmonic_adjoint": ["legendre.legendre_adjoint"],
    "fast_sums.harmonic_synthesis": ["legendre.legendre_synthesis"],
    "fast_sums.legendre_function": ["legendre.legendre_synthesis"],
    "fastfood.fastfood_frequencies": ["hadamard.hadamard_transform"],
    "fourier.fourier_variance": ["variances.fourier_variance"],
    "fourier.modified_weight": ["directions.modified_weights"],
    "fourier.orthogonal_frequencies": ["directions.orthogonal_directions"],
    "gegenbauer.feature": ["gegenbauer.gegenbauer_features", "series.interpolate"],
    "gegenbauer.feature_matrix": ["gegenbauer.gegenbauer_features", "series.interpolate"],
    "gegenbauer.features_in_halves": ["gegenbauer.gegenbauer_features"],
    "gegenbauer.gzk_kernel": ["gegenbauer.apply_operator", "gegenbauer.apply_adjoint"],
    "gegenbauer.operator_rows": ["gegenbauer.apply_operator"],
    "gegenbauer.zonal_feature": ["gegenbauer.gegenbauer_features"],
    "gram.centred_moments": ["gram.add_moments", "gram.recentre"],
    "gram.cluster_sums": ["kmeans.nearest_centers"],
    "gram.gram": ["gram.add_moments"],
    "gram.moments": ["gram.add_moments"],
    "harmonics.n_harmonics": ["special.n_harmonics"],
    "harmonics.spherical_harmonics": ["harmonics.harmonic_features"],
    "kernel_ridge.conditioned_draw": ["products.kernel_product"],
    "kernel_ridge.dual_coefficients": ["products.kernel_product"],
    "kernel_ridge.predictive_variance": ["products.kernel_product"],
    **{
        f"kernels.{name}": ["products.kernel_matrix"]
        if name.islower()
        else ["special.log_squared_coefficients", "series.radial_table"]
        for name in reference.kernels.__all__
    },
    "kernels.generalized_zonal": ["series.generalized_zonal"],
    "kernels.sphere_heat": ["series.zonal_sum", "products.kernel_matrix"],
    "kernels.sphere_matern": ["series.zonal_sum", "products.kernel_matrix"],
    "kernels.zonal": ["series.zonal_sum", "products.kernel_matrix"],
    "kmeans.lloyd": ["kmeans.nearest_centers"],
    "kmeans.objective": ["kmeans.nearest_centers"],
    "learned.average_gradient_outer_product": ["products.kernel_slopes"],
    "learned.learned_criterion": ["products.kernel_matrix", "cholesky.factor"],
    "learned.learned_gradient": ["products.kernel_matrix", "cholesky.invert", "learned.distance_sums"],
    "losses.loss_minimum": ["products.kernel_product"],
    "maclaurin.maclaurin_variance": ["variances.maclaurin_variance"],
    "near_rows.coded_distance": ["neighbours.nearest", "neighbours.tree_order"],
    "near_rows.conditional_criterion": ["neighbours.kernel_of_blocks"],
    "near_rows.nearest": ["neighbours.nearest"],
    "near_rows.prediction_from_near_rows": ["neighbours.sparse_factor"],
    "nystrom.kernel_distances": ["nystrom.accept_distances"],
    "nystrom.pivoted_cholesky": ["nystrom.accept_pivots"],
    "pca.principal_components": ["gram.add_moments", "gram.recentre"],
    "polysketch.poly_sketch_variance": ["variances.poly_sketch_variance"],
    "polysketch.tensor_srht": ["hadamard.hadamard_transform"],
    "preconditioners.near_and_far_inverse": ["neighbours.multiply", "neighbours.multiply_transposed"],
    "preconditioners.near_landmarks": ["neighbours.spread", "neighbours.gram_of_seen"],
    "preconditioners.nearest_before": ["neighbours.nearest_before"],
    "preconditioners.sparse_factor": ["neighbours.sparse_factor"],
    "products.gradient": ["products.kernel_slopes"],
    "projection.fast_jl_variance": ["variances.fast_jl_variance"],
    "projection.hadamard_projection_variance": ["variances.hadamard_projection_variance"],
    "ridge.k_fold_error": ["gram.add_moments", "gram.solve_ridge"],
    "ridge.gcv_score": ["gram.add_moments", "gram.mirror"],
    "ridge.loo_errors": ["gram.add_moments", "gram.mirror"],
    "ridge.ridge": ["gram.add_moments", "gram.recentre", "gram.solve_ridge"],
    "ridge.ridge_classifier": ["gram.add_moments", "gram.recentre", "gram.solve_ridge"],
    "series.gegenbauer_series": ["series.gegenbauer_rule", "series.taylor_series"],
    "series.radial_series": ["series.gegenbauer_rule"],
    "series.radial_table": ["special.log_squared_coefficients", "series.radial_table"],
    "sketch.tensor_sketch_variance": ["variances.tensor_sketch_variance"],
    "special.alpha": ["special.exact_alpha", "special.alpha"],
    "theory.dot_product_directions": ["series.angular_energy"],
    "theory.gaussian_directions": ["series.angular_energy"],
}  # fmt: skip

# Why no kernel computes these.
NOT_COMPILED = {
    "one number from a closed form: nothing to loop over": [
        "block.lemma_4_6", "product.product_kernel", "special.sphere_area", "theory.clustering_bound",
        "theory.condition_bound", "theory.iterations_bound", "theory.johnson_lindenstrauss",
        "theory.matrix_bernstein", "theory.projection_directions", "theory.required_directions",
        "theory.table_1",
    ],
    "products of matrices, their inverses, roots and eigenvalues: BLAS's and LAPACK's": [
        "adaptive.monomial_leverage", "centers.sampled_system", "kernel_ridge.prior_scale",
        "metrics.clustering_cost", "metrics.projection_cost_error", "metrics.spectral_error",
        "metrics.whitened_error", "nystrom.nystrom_kernel", "nystrom.recursive_leverage",
        "preconditioners.low_rank_inverse", "preconditioners.low_rank_shift", "ridge.gram_product",
        "ridge.nystrom_sketch", "theory.ridge_leverage", "theory.ridge_leverage_minimum",
        "theory.ridge_risk", "theory.risk_bound", "theory.statistical_dimension",
    ],
    "a product of matrices by BLAS, tile by tile, and its sum or difference by NumPy": [
        "metrics.mean_distance_error", "metrics.mean_kernel_error",
        "metrics.relative_frobenius_error", "theory.leverage_bound",
    ],
    "the order of n numbers: a sort by NumPy, and what follows from ranks": [
        "adaptive.choose_first", "losses.huber_scale",
        "table.normal_scores", "table.outer_widening", "table.widening",
    ],
    "a chain of random draws, and draws stay out of kernels": ["adaptive.draw_by_modes", "adaptive.draw_by_rows"],
    "a view of the same numbers, or their bounds: nothing is computed": ["block.block_sizes", "block.blocks"],
    "steps of vectors by NumPy and BLAS around the operator's product, which is compiled": [
        "solve.conjugate_gradient", "solve.preconditioned_conjugate_gradient",
    ],
    "FFTs, nonuniform ones at points: those of finufft and SciPy": [
        "fast_sums.box_coefficients", "fast_sums.cosine_coefficients", "fast_sums.fourier_adjoint",
        "fast_sums.fourier_synthesis", "fast_sums.node_weights",
    ],
    "some thousand numbers, once for a kernel": ["fast_sums.smooth_part", "fast_sums.zonal_coefficients"],
    "the norm of a vector, once for a fit": ["fast_sums.series_error_bound"],
    "one number a row by NumPy, beside n for the kernel matrix": ["products.kernel_diagonal"],
    "the limit of smoothed_pinball, which is what is computed": ["losses.pinball"],
    "two passes of NumPy, which take twice as long as a copy of X": ["block.mean_normalise"],
    "a few hundred logarithms at most": ["series.growth_constants", "series.truncate", "table.importances"],
    "a few operations on a number or two for each row, by NumPy": [
        "table.class_probabilities", "table.gain_of_varying_noise", "table.logarithms", "table.widened",
    ],
}  # fmt: skip

# Formula -> what does the same under another name, often a class, and the test that compares them.
OTHER_NAMES = {
    "adaptive.choose_first": ("AdaptiveSketchFeatures", "test_weights_are_those_of_the_reference"),
    "adaptive.draw_by_modes": ("AdaptiveSketchFeatures", "test_draws_of_the_reference_have_that_law"),
    "adaptive.draw_by_rows": ("AdaptiveSketchFeatures", "test_draws_of_the_reference_have_that_law"),
    "adaptive.monomial_leverage": ("AdaptiveSketchFeatures", "test_probabilities_are_the_leverage_of_the_reference"),
    "block.block_energies": ("block_projection", "test_repetitions_are_features_too"),
    "block.block_matrix": ("BlockProjection", "test_three_ways_to_write_algorithm_1"),
    "block.block_sizes": ("BlockProjection", "test_every_coordinate_meets_every_block"),
    "block.blocks": ("block_projection", "test_three_ways_to_write_algorithm_1"),
    "block.diagonal_of_product": ("block_projection", "test_three_ways_to_write_algorithm_1"),
    "block.diagonal_sum": ("block_projection", "test_three_ways_to_write_algorithm_1"),
    "block.fast_fourier_features": ("BlockFourierFeatures", "test_the_papers_setting_is_reachable"),
    "block.fast_random_projection": ("BlockProjection", "test_three_ways_to_write_algorithm_1"),
    "block.lemma_4_6": ("block_report", "test_the_bounds_of_lemma_4_6"),
    "block.mean_normalise": ("MeanNormalizer", "test_mean_normalise_is_the_normaliser"),
    "block.repeated_fourier_features": ("BlockFourierFeatures", "test_repetitions_are_features_too"),
    "cca.canonical_correlations": ("RandomFeatureCCA", "test_as_the_reference"),
    "centers.center_ridge": ("solve_centers", "test_as_the_reference"),
    "centers.center_variance": ("KernelRidge", "test_variances_on_centres_are_those_of_the_reference"),
    "centers.sampled_system": ("FactoredGram", "test_preconditioner_is_the_system_of_a_sample"),
    "directions.fibonacci_directions": ("sample_directions", "test_fibonacci_is_the_lattice_turned"),
    "directions.iid_directions": ("sample_directions", "test_iid_is_the_map_of_the_same_draws"),
    "directions.orthogonal_directions": ("sample_directions", "test_orthogonal_is_the_map_of_the_same_draws"),
    "directions.sobol_directions": ("sample_directions", "test_sobol_fills_the_cube_evenly"),
    "fast_sums.box_coefficients": ("Box", "test_coefficients_in_a_box_are_those_of_the_reference"),
    "fast_sums.cosine_coefficients": ("cosine_coefficients", "test_series_of_cosines_are_those_of_the_reference"),
    "fast_sums.fourier_adjoint": ("Exponentials", "test_exponentials_are_those_of_the_reference"),
    "fast_sums.fourier_synthesis": ("Exponentials", "test_exponentials_are_those_of_the_reference"),
    "fast_sums.harmonic_adjoint": ("HarmonicSums", "test_sums_and_adjoint_are_those_of_the_reference"),
    "fast_sums.harmonic_synthesis": ("HarmonicSums", "test_sums_and_adjoint_are_those_of_the_reference"),
    "fast_sums.legendre_function": ("HarmonicSums", "test_legendre_functions_on_rings_are_those_of_the_reference"),
    "fast_sums.node_weights": ("ExponentialSums", "test_sums_and_nodes_are_those_of_the_reference"),
    "fast_sums.series_error_bound": ("SeriesRidge", "test_it_is_kernel_ridge_on_the_first_terms"),
    "fast_sums.smooth_part": ("KernelSplit", "test_the_smooth_part_is_the_taylor_polynomial_of_the_reference"),
    "fast_sums.zonal_coefficients": ("zonal_coefficients", "test_zonal_coefficients_are_those_of_the_reference"),
    "fourier.orthogonal_frequencies": ("sample_frequencies", "test_orthogonal_frequencies_of_the_reference"),
    "gegenbauer.apply_adjoint": ("feature_operator", "test_operator_is_that_of_the_reference"),
    "gegenbauer.apply_operator": ("feature_operator", "test_operator_is_that_of_the_reference"),
    "gegenbauer.feature": ("PublishedGegenbauerFeatures", "test_feature_matrix_layout"),
    "gegenbauer.feature_matrix": ("PublishedGegenbauerFeatures", "test_published_features_are_those_of_the_reference"),
    "gegenbauer.gzk_kernel": ("feature_operator", "test_operator_is_that_of_the_reference"),
    "gegenbauer.operator_rows": ("feature_operator", "test_feature_matrix_layout"),
    "gegenbauer.zonal_feature": ("PublishedGegenbauerFeatures", "test_published_zonal_features_are_those_of_the_reference"),
    "gram.centred_moments": ("MomentsAccumulator", "test_centred_moments_and_clusters_as_the_reference"),
    "gram.cluster_sums": ("ClusterAccumulator", "test_centred_moments_and_clusters_as_the_reference"),
    "gram.gram": ("GramAccumulator", "test_small_example_by_hand"),
    "gram.moments": ("GramAccumulator", "test_small_example_by_hand"),
    "kernel_ridge.conditioned_draw": ("KernelRidge", "test_draws_follow_the_rule_of_the_reference"),
    "kernel_ridge.dual_coefficients": ("KernelRidge", "test_coefficients_as_the_reference"),
    "kernel_ridge.predictive_variance": ("KernelRidge", "test_variances_as_the_reference"),
    "kernel_ridge.prior_scale": ("KernelRidge", "test_coefficients_as_the_reference"),
    # A kernel is the class of its formula's name.
    **{
        f"kernels.{name}": (name.title().replace("_", ""), "test_values_are_the_formula")
        for name in reference.kernels.__all__
        if name.islower()
    },
    "kernels.gaussian": ("Gaussian", "test_gaussian_is_the_formula"),
    "kernels.sphere_heat": ("SphereHeat", "test_kernels_of_the_sphere_are_the_formula"),
    "kernels.sphere_matern": ("SphereMatern", "test_kernels_of_the_sphere_are_the_formula"),
    "kernels.spherical": ("Spherical", "test_spherical_is_the_formula_in_three_dimensions"),
    "kernels.zonal": ("Zonal", "test_zonal_is_the_formula"),
    **{
        f"kernels.{name}": (name, "test_radial_tables_of_dot_products_are_the_formula")
        for name in ("DotProduct", "ExponentialDot", "Gaussian", "Polynomial")
    },
    "kmeans.lloyd": ("RandomFeatureKMeans", "test_as_the_reference"),
    "kmeans.nearest_centers": ("RandomFeatureKMeans", "test_as_the_reference"),
    "kmeans.objective": ("RandomFeatureKMeans", "test_as_the_reference"),
    "learned.average_gradient_outer_product": ("average_gradient_outer_product", "test_as_the_reference_by_differences"),
    "learned.learned_criterion": ("learn_kernel", "test_criterion_and_gradient_are_the_reference"),
    "learned.learned_gradient": ("learn_kernel", "test_criterion_and_gradient_are_the_reference"),
    "losses.huber": ("Huber", "test_losses_are_those_of_the_reference"),
    "losses.logistic": ("Logistic", "test_losses_are_those_of_the_reference"),
    "losses.loss_minimum": ("minimise", "test_coefficients_as_the_reference"),
    "losses.pinball": ("KernelQuantileRegressor", "test_the_pinball_loss_is_least_but_for_tol"),
    "losses.poisson": ("Poisson", "test_losses_are_those_of_the_reference"),
    "losses.smoothed_pinball": ("Pinball", "test_losses_are_those_of_the_reference"),
    "losses.softmax": ("Softmax", "test_losses_are_those_of_the_reference"),
    "near_rows.coded_distance": ("Nearest", "test_near_rows_with_codes_are_those_of_the_reference"),
    "near_rows.conditional_criterion": ("NearKernelRidge", "test_conditional_criterion_is_the_reference"),
    "near_rows.nearest": ("Nearest", "test_near_rows_are_those_of_the_reference"),
    "near_rows.prediction_from_near_rows": ("NearKernelRidge", "test_means_and_deviations_are_the_reference"),
    "nystrom.kernel_distances": ("NystromFeatures", "test_proposals_have_the_law_of_one_at_a_time"),
    "nystrom.nystrom_kernel": ("NystromFeatures", "test_features_are_the_projection"),
    "nystrom.pivoted_cholesky": ("NystromFeatures", "test_proposals_have_the_law_of_one_at_a_time"),
    "nystrom.recursive_leverage": ("NystromFeatures", "test_leverage_is_the_reference"),
    "pca.principal_components": ("RandomFeaturePCA", "test_as_the_reference"),
    "products.gradient": ("KernelOperator", "test_gradient_is_the_formula"),
    "products.kernel_diagonal": ("kernel_diagonal", "test_matrices_and_products_are_the_formula"),
    "products.kernel_matrix": ("kernel_matrix", "test_matrices_and_products_are_the_formula"),
    "products.kernel_product": ("kernel_product", "test_matrices_and_products_are_the_formula"),
    "preconditioners.low_rank_inverse": ("LowRank", "test_low_rank_is_the_reference"),
    "preconditioners.low_rank_shift": ("LowRank", "test_low_rank_is_the_reference"),
    "preconditioners.near_and_far_inverse": ("NearAndFar", "test_near_and_far_is_the_reference"),
    "preconditioners.near_landmarks": ("NearLandmarks", "test_near_landmarks_is_the_reference"),
    "preconditioners.nearest_before": ("Neighbours", "test_neighbours_are_those_of_the_reference"),
    "preconditioners.sparse_factor": ("SparseFactor", "test_the_factor_is_that_of_the_reference"),
    "ridge.gcv_score": ("RandomFeatureRidgeCV", "test_every_score_as_the_reference"),
    "ridge.k_fold_error": ("RandomFeatureRidgeCV", "test_every_score_as_the_reference"),
    "ridge.loo_errors": ("RandomFeatureRidgeCV", "test_n_folds_are_leave_one_out"),
    "ridge.nystrom_sketch": ("nystrom_sketch", "test_sketch_as_the_reference"),
    "ridge.ridge": ("RandomFeatureRidge", "test_every_score_as_the_reference"),
    "ridge.ridge_classifier": ("RandomFeatureRidgeClassifier", "test_classes_as_the_reference"),
    "solve.conjugate_gradient": ("conjugate_gradients", "test_one_column_is_the_textbook"),
    "solve.preconditioned_conjugate_gradient": ("conjugate_gradients", "test_one_column_is_the_textbook"),
    "table.class_probabilities": ("KernelClassifier", "test_powers_are_those_of_the_reference"),
    "table.gain_of_varying_noise": ("KernelRegressor", "test_gains_are_those_of_the_reference"),
    "table.importances": ("KernelRegressor", "test_importances_are_those_of_the_reference"),
    "table.logarithms": ("TableEncoder", "test_logarithms_are_those_of_the_reference"),
    "table.normal_scores": ("TableEncoder", "test_ranks_are_those_of_the_reference"),
    "table.outer_widening": ("KernelRegressor", "test_outer_widening_is_that_of_the_reference"),
    "table.widened": ("KernelRegressor", "test_widened_is_that_of_the_reference"),
    "table.widening": ("KernelRegressor", "test_widening_is_that_of_the_reference"),
    "theory.ridge_leverage_minimum": ("ridge_leverage", "test_leverage_is_the_same_by_operator_by_rows_and_by_lemma_17"),
}  # fmt: skip

# Formula -> why it has no mirror, and the test that shows what it is for.
WITHOUT_MIRROR = {
    "block.chi_square": ("a statement about dense projections", "test_chi_square_is_for_dense_matrices"),
    "block.correction_factor": ("no features can contain it", "test_the_factor_of_proposition_4_2"),
    "block.laurent_massart": ("a bound beside block_report", "test_the_bound_that_holds_for_any_blocks"),
    "hadamard.hadamard_matrix": ("scipy.linalg.hadamard", "test_the_matrix_of_signs"),
    "kmeans.cluster_indicator": ("metrics.clustering_cost needs no matrix", "test_the_objective_is_a_projection"),
    "special.orthogonality": ("an identity, whose value nobody needs", "test_orthogonality"),
}  # fmt: skip

# Idea -> the class of its benchmark that times its formulas; idea.formula -> that of this one, in the
# file of the idea unless another is named.
BENCHMARKS = {
    "adaptive": "AgainstNystrom",
    "block": "Projection", "block.block_fourier_features": "FourierFeatures",
    "block.fast_fourier_features": "FourierFeatures", "block.repeated_fourier_features": "FourierFeatures",
    "block.lemma_4_6": "Report",
    "cca": "Fit",
    "centers": "Fit", "centers.sampled_system": "Steps",
    "cholesky": "Solve", "cholesky.cholesky": "Factor", "cholesky.inverse_of": "Inverse",
    "directions": "Means",
    "fast_sums": "Harmonics", "fast_sums.fourier_adjoint": "Product", "fast_sums.fourier_synthesis": "Product",
    "fastfood": "Transform",
    "fourier": "Transform", "fourier.orthogonal_frequencies": "Frequencies",
    "gegenbauer": "Transform", "gegenbauer.features_in_halves": "KernelInCache",
    "gegenbauer.gegenbauer_features": "KernelInCache",
    "gram": "Update",
    "hadamard": "Transform",
    "harmonics": "Columns",
    "kernel_ridge": "Fit", "kernel_ridge.conditioned_draw": "Spread",
    "kernel_ridge.predictive_variance": "Spread",
    "kernels": "GaussianMatrix",
    "kmeans": "Fit", "kmeans.nearest_centers": "Pass",
    "learned": "Learn", "learned.average_gradient_outer_product": "Gradients",
    "losses": "Fit",
    "maclaurin": "AgainstNumPy",
    "metrics": "Metric", "metrics.projection_cost_error": "ProjectionCost",
    "near_rows": "Predict", "near_rows.coded_distance": "Categories", "near_rows.conditional_criterion": "Lengths",
    "nystrom": "Landmarks",
    "pca": "Fit",
    "polysketch": "Against",
    "preconditioners": "Making", "preconditioners.near_and_far_inverse": "Solve",
    "preconditioners.low_rank_inverse": "Solve",
    "product": "ProductsToMemory",
    "products": "Product", "products.kernel_matrix": "Matrix", "products.gradient": "Gradient",
    "projection": "Transform",
    "ridge": "Fit", "ridge.gcv_score": "Choose", "ridge.gram_product": "Wide", "ridge.nystrom_sketch": "Wide",
    "ridge.k_fold_error": "Choose", "ridge.loo_errors": "Choose",
    "series": "Series", "series.radial_table": "RadialTable", "series.truncate": "Truncation",
    "sketch": "Transform",
    "solve": "Steps",
    "special": "Polynomial",
    "table": "Fit",
    "theory": "StatisticalDimension", "theory.ridge_leverage": "Leverage",
    "theory.ridge_leverage_minimum": "Leverage",
    **dict.fromkeys(
        [
            "adaptive.monomial_features", "block.energy_variance", "block.kernel_moments",
            "block.projection_moments", "block.projection_variance", "fourier.fourier_variance",
            "fourier.modified_weight", "gegenbauer.apply_adjoint", "gegenbauer.apply_operator",
            "harmonics.n_harmonics", "kernels.generalized_zonal", "maclaurin.maclaurin_variance",
            "polysketch.poly_sketch_variance", "projection.fast_jl_variance",
            "projection.hadamard_projection_variance", "series.angular_energy",
            "series.radial_series", "sketch.tensor_sketch_variance", "special.alpha",
            "special.gegenbauer_coefficients", "special.mu", "special.rodrigues",
        ],
        "formulas.AgainstReference",
    ),
}  # fmt: skip

# Why no benchmark times these.
NOT_TIMED = {
    "a closed form for a few numbers": [
        "series.growth_constants", "special.sphere_area", "theory.clustering_bound",
        "theory.condition_bound", "theory.iterations_bound", "theory.johnson_lindenstrauss",
        "theory.matrix_bernstein", "theory.projection_directions", "theory.required_directions",
        "theory.table_1",
    ],
    "`truncate` and `angular_energy`, which are timed": [
        "theory.dot_product_directions", "theory.gaussian_directions",
    ],
    "a few products of matrices, which are BLAS's": [
        "metrics.clustering_cost", "theory.leverage_bound", "theory.ridge_risk",
        "theory.risk_bound",
    ],
    "a sum over the polynomials that special.Polynomial times": ["series.zonal_sum"],
    "a matrix takes what the Gaussian's takes, and a function of each entry": [
        f"kernels.{name}"
        for name in reference.kernels.__all__
        if name.casefold() not in {"gaussian", "generalized_zonal"}
    ],
    "a series in one variable, once for many products": [
        "fast_sums.box_coefficients", "fast_sums.cosine_coefficients", "fast_sums.smooth_part",
        "fast_sums.zonal_coefficients", "fast_sums.node_weights", "fast_sums.series_error_bound",
    ],
    "one number for each row": ["products.kernel_diagonal"],
    "a sort of n numbers": ["losses.huber_scale"],
    "a sum of n numbers": ["preconditioners.low_rank_shift"],
}  # fmt: skip


@dataclass(frozen=True)
class Formula:
    """A row of the table."""

    mirror: str | None  # a name in one of the MODULES of the idea
    test: str
    benchmark: str | None  # a class in the idea's benchmark
    reason: str = ""  # why there is no mirror, or no benchmark
    compiled: tuple[str, ...] = ()  # module.function of gzkcore._compiled
    in_python: str = ""  # why nothing is compiled


def table():
    """Return {idea.name: Formula} of all public formulas."""
    untimed = {where: reason for reason, names in NOT_TIMED.items() for where in names}
    in_python = {where: reason for reason, names in NOT_COMPILED.items() for where in names}
    rows = {}
    for idea in reference.__all__:
        for name in getattr(reference, idea).__all__:
            where = f"{idea}.{name}"
            if where in WITHOUT_MIRROR:
                reason, test = WITHOUT_MIRROR[where]
                rows[where] = Formula(None, test, None, reason, (), reason)
                continue
            mirror, test = OTHER_NAMES.get(where, (name, "test_values"))
            timed = None if where in untimed else BENCHMARKS.get(where, BENCHMARKS.get(idea))
            kernels = () if where in in_python else tuple(COMPILED.get(where, [where]))
            why = in_python.get(where, "")
            rows[where] = Formula(mirror, test, timed, untimed.get(where, ""), kernels, why)
    return rows


def mirrors_of(idea):
    """Return everything public of an idea's modules, as one namespace."""
    modules = [importlib.import_module(f"gzkcore.{name}") for name in MODULES[idea]]
    public = {name: getattr(module, name) for module in modules for name in module.__all__}
    return SimpleNamespace(**public, __all__=[*public])
