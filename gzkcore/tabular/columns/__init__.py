"""The columns of a table: one class for each kind, whole in its file.

    a file, frame, array, Dask part -> Cells -> Cells.read -> the first of KINDS whose `of` takes it
                                       cells                  left_out, category, date, number
    latitude and longitude, two numbers -> with_places -> Place

- `cells`: the values of a column as they come, and what text among them means
- `column`: the protocol of a kind: `of`, `read`, `encode`, `parts`, `slopes`, `drift`, `remarks`
- `left_out`, `number`, `date`, `category`, `place`: the kinds
- `kinds`: the table of kinds, and the choice of one by a user

To add a kind, write its file and add its class to `KINDS` in `kinds`.
"""
