"""The command `gzkcore`.

- `main`: all commands; `commands_fit`, `commands_predict`, `commands_plan`, `commands_show`: each
- `arguments`, `flags`: what options mean, and what is wrong with them
- `fit_frame`, `fit`, `fit_whole`: `gzkcore fit`, its option --features, and --whole
- `frame_rows`, `held_out`, `plan_rows`, `survey`, `hints`: rows to learn from, and what is in them
- `kernels`, `recipes`: kernels by name, and what a saved model knows of its table
- `baselines`, `verdict`, `columns`: what a fit is worth, and which columns matter
- `show_frame`, `show_fit`, `reports`, `output`: what is printed
- `maps`, `pictures`, `grid`, `cells`: what is drawn, and grids of predictions
- `demo`: what `gzkcore demo` shows
"""
