"""Where rows come from, in one way for all.

`sources` says what a source of batches is, and reads one in turn; `dask` reads Dask collections;
`tables` reads files; `open` opens any of them; `survey` measures rows in one pass.
"""
