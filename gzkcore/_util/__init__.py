"""What every layer uses.

- `threads`, `random`, `memory`, `new_arrays`, `linalg`: how computations run
- `typing`, `validation`, `wording`, `warn`, `remark`: what is passed in, and what users are told
- `nonuniform`: sums of exponentials at scattered points
- `files`, `model_io`, `state`, `checkpoint`: files, and saved models
- `callbacks`, `config`: progress for scikit-learn, and what `gzkcore info` prints
- `extras`: packages that are asked for where they are needed
"""
