"""What every layer uses.

- `threads`, `random`, `memory`, `new_arrays`, `linalg`: how computations run
- `typing`, `validation`, `arguments`: what is passed in
- `wording`, `warn`, `remark`: what users are told
- `nonuniform`: sums of exponentials at scattered points
- `files`, `model_io`, `state`, `checkpoint`: files, and saved models
- `callbacks`, `config`: progress for scikit-learn, and what `gzkcore info` prints
- `extras`, `lazy`: packages, and names, that are asked for where they are needed
"""
