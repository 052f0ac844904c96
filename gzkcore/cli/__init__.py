"""The command `gzkcore`.

    options -> read_rows -> fit_frame -> judge_model -> print_frame, draw_frame
    commands_fit frame_rows              verdict        show_frame   pictures, maps

- `main`: all commands; `commands_fit`, `commands_predict`, `commands_plan`, `commands_show`: each
- `arguments`, `flags`: what options mean, and what is wrong with them
- `frame_rows`, `held_out`, `hints`: the rows of a table, those held out, and what is in them
- `fit_frame`: learns, saves and tests; `baselines`, `verdict`: what a fit is worth
- `plan_rows`: the rows that plans and comparisons take
- `inputs`: the columns of a file that a model predicts from
- `show_frame`, `output`: what is printed
- `maps`, `pictures`, `grid`, `cells`: what is drawn, and grids of predictions
- `page`, `effects`, `parts_of_dates`: the report to keep, and what each column does in it
- `demo`: what `gzkcore demo` shows
"""
