"""Sources of rows: arrays, batches, files and Dask collections, with a common interface.

- `open`: opens any of them
- `sources`, `dask`: what a source of batches is, and reading it, here or on a cluster
- `files`, `csv_text`, `columnar`: files, read batch by batch, of text and of columns with types
- `frames`, `numeric`, `categories`, `dates`, `values`: columns of several kinds, and their values
- `meaning`, `index`: what the texts of a column mean, and which columns do not predict
- `survey`: measures rows in one pass
"""
