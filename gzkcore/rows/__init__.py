"""Sources of rows: arrays, batches, files and Dask collections, with a common interface.

- `open`: opens any of them
- `sources`, `dask`: what a source of batches is, and reading it, here or on a cluster
- `files`, `csv_text`, `columnar`: files, read batch by batch, of text and of columns with types
- `frames`, `dates`, `values`: columns of several types, and their values
- `coded`: rows with categories, which take a number each
- `text`, `doubts`: what the texts of a column mean, and what those seem that were not understood
- `degrees`: latitudes and longitudes in text
- `index`: columns that do not predict
- `survey`: measures rows in one pass
"""
