"""Sources of rows: arrays, batches, files and Dask collections, with a common interface.

`sources` defines sources of batches and reads them; `dask` reads Dask collections; `tables` reads
files; `open` opens any of them; `survey` computes statistics of rows in one pass.
"""
