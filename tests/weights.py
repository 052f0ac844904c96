"""Checks of weights by scikit-learn that features based on a sample of the rows need not pass."""

# A row of weight 2 is no more likely to be looked at than another, as two equal rows are.
LOOKS_AT_ROWS = {
    f"check_sample_weight_equivalence_on_{kind}_data": (
        "it looks at some rows, whatever their weights: see sample_weight of fit"
    )
    for kind in ("dense", "sparse")
}
