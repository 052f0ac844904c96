"""The tables and figures of the two papers, run anew beside the printed numbers.

- `reproduce`: runs an experiment, and continues it; `__main__`: the command line
- `gegenbauer`, `block`: the experiments of each paper
- `experiment`: what an experiment is, and how a cell is judged
- `printed`: the printed numbers
- `data`: the data sets, as each paper scales them; `downloads`: their sources
- `drawing`: pictures
"""
