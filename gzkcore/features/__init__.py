"""Feature maps: transformers of rows to columns whose inner products approximate a kernel."""
