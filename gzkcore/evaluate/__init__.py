"""How good and how fast features are: plans and comparisons, with their pictures."""
