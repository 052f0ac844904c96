"""Where rows come from: arrays, batches, files and Dask collections, read in one way.

`sources` says what a source of batches is, and reads one in turn; `dask` reads Dask collections;
`tables` reads files; `open` opens any of them; `survey` measures rows in one pass.
"""
