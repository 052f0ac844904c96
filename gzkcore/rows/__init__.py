"""Sources of rows: arrays, batches, files and Dask collections, with a common interface.

- `open`: opens any of them
- `sources`, `dask`: what a source of batches is, and reading it, here or on a cluster
- `tables`, `csv_text`, `columns`: files, read batch by batch
- `frames`, `dates`, `values`: tables with columns of several kinds, and what single values mean
- `survey`: measures rows in one pass
"""
