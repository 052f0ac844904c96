"""Plans and comparisons of features: their errors, times and memory, with pictures."""
