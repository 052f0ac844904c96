"""Where rows come from: arrays, batches, files, Dask collections, and surveys of them."""
