"""Feature maps: transformers of rows to columns whose inner products are a kernel."""
