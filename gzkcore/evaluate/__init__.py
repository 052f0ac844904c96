"""Plans and comparisons of features: their errors, times and memory, with pictures.

- `plan`, with `forecast`: how many features, and what predictions will be worth
- `compare`, with `methods`, `whole`, `measure`, `worker`, `results`: every method
- `draw`: pictures
"""
