"""The tables of `tables.py peers`: feature maps beside other libraries, from the asv classes."""

import itertools

from benchmarks import fastfood, fourier, maclaurin, nystrom, polysketch, projection, sketch
from printing import asked_parts, report, show

PEERS = {
    "fourier": fourier.AgainstRBFSampler,
    "fastfood": fastfood.Against,
    "sketch": sketch.AgainstScikitLearn,
    "polysketch": polysketch.Against,
    "maclaurin": maclaurin.AgainstNumPy,
    "nystrom": nystrom.AgainstNystroem,
    "projection": projection.AgainstScikitLearn,
}


def peers(options):
    """How many times faster each map is than the same by others, at equal width."""
    for name in asked_parts("peers", options, PEERS):
        benchmark = PEERS[name]
        notes = f"{benchmark.__doc__.splitlines()[0]} Medians of the ratios of rounds."
        show(name, _rows(name, benchmark, options), notes, options)


def _rows(name, benchmark, options):
    grid = getattr(benchmark, "grid", benchmark.params)  # asv runs a part of it
    choices = [list(each)[:1] if options.quick else each for each in grid]
    rows = []
    for case in itertools.product(*choices):
        row = dict(zip(benchmark.param_names, case, strict=True))
        report(f"{name} {row}")
        instance = benchmark()
        try:
            instance.setup(*case)
        except NotImplementedError as error:
            rows.append({**row, "times faster": str(error)})
            continue
        rows.append({**row, "times faster": instance.track_times_faster(*case)})
        if hasattr(instance, "teardown"):
            instance.teardown(*case)
    return rows
