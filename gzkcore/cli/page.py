"""The page of `gzkcore fit --report`: one file, which needs no network."""

import datetime
import functools
import html
import re
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gzkcore._util.files import replacing
from gzkcore._util.typing import OnProgress
from gzkcore._util.wording import in_list, printable, seconds_told
from gzkcore.evaluate.draw import COLORS, as_svg, as_written, styled
from gzkcore.rows.frames import kind_of
from gzkcore.rows.text import NUMBER
from gzkcore.sphere.globe import off_globe
from gzkcore.tabular.columns.place import place_columns

from .effects import draw_column, effects_of
from .inputs import place_names
from .maps import map_of_errors, maps_of
from .pictures import draw_bars, draw_calibration, draw_errors, draw_predictions, has_bars
from .show_frame import text_of, told_lengths

if TYPE_CHECKING:
    from .fit_frame import FrameFit

MOST_COLUMNS = 12  # the effects of no more columns are drawn
# Pictures are so many inches wide, and a map across the page: their letters of 10 points are at
# least 12 pixels high, on a telephone and on a broad screen.
WIDE, BROAD = 4.0, 10.0
ABOUT_EFFECTS = (
    "Above: the mean prediction with the column set to each value. The band has 80 % of the rows, "
    "each moved to the same mean: it is wide where other columns change the effect."
)
ABOUT_ERRORS = " Below: the errors of held-out rows, and their means with 95 % intervals."
ABOUT_LOSSES = " Below: the mean log loss of held-out rows, with 95 % intervals."
STYLE = """
:root { color-scheme: light dark; --paper: #fff; --ink: #24303c; --rule: #d9dfe6; --line: #0072b2 }
@media (prefers-color-scheme: dark) {
  :root { --paper: #14181d; --ink: #e3e8ed; --rule: #3a444f; --line: #56b4e9 } }
body { margin: 0; background: var(--paper); color: var(--ink); font: 1rem/1.5 system-ui, sans-serif;
  overflow-wrap: break-word }
main { max-width: 72rem; margin: auto; padding: 1rem; display: grid; gap: 0 3rem;
  grid-template-columns: repeat(auto-fit, minmax(min(100%, 28rem), 1fr)) }
h1, main > p, nav, section:has(h3) { grid-column: 1 / -1 }
h1, main > p { margin: .5rem 0 }
h2 { margin: 2rem 0 1rem; border-bottom: 1px solid var(--rule) }
nav a { color: var(--line); margin-right: 1em }
section { min-width: 0 }
figure { margin: 1rem 0 }
.columns { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 23rem), 1fr));
  gap: 1rem 1.5rem }
svg { display: block; width: 100%; max-width: 30rem; height: auto; stroke-linejoin: round }
section:has(.broad), main:has(.broad) #part-0 { grid-column: 1 / -1 }
.beside, main:has(.broad) #part-0 { display: grid; gap: 0 3rem;
  grid-template-columns: repeat(auto-fit, minmax(min(100%, 28rem), 1fr)) }
#part-0 :is(h2, p) { grid-column: 1 / -1 }
.broad svg { max-width: none; max-height: 60rem }
.beside svg { max-width: 36rem }
.narrow { display: none }
@media (max-width: 58rem) { .broad { display: none } .narrow { display: block } }
.wide { overflow-x: auto }
table { border-collapse: collapse; font-size: clamp(.8rem, 2vw, .9rem);
  font-variant-numeric: tabular-nums }
th, td { padding: .3em .2em; text-align: right; border-bottom: 1px solid var(--rule) }
th:first-child, td:first-child { text-align: left }
@media (min-width: 40rem) { th, td { padding: .3em .6em } td + td { white-space: nowrap } }
dt { font-weight: 600 }
dd { margin: 0 0 .5rem }
pre { border: 1px solid var(--rule); padding: .75rem; white-space: pre-wrap }
"""


@styled(axes_titlesize=10)
def write_page(
    fit: "FrameFit", result: dict[str, Any], context: Any, report: OnProgress, path: Path
) -> None:
    """Write a page about a fit; `context` is typer's, of the command."""
    text, verdict, name = text_of(result), fit.verdict, Path(result["data"]).name
    no_errors = ["No rows were held out, so that no errors are known."] * (verdict is None)
    errors = calibration = bars = ""
    if verdict is not None:
        errors = _drawn("errors", lambda axes: draw_errors(axes, fit, verdict), inches=2.4)
        calibration = _drawn("calibration", lambda axes: draw_calibration(axes, fit, verdict))
    if verdict is not None and has_bars(verdict):
        bars = _drawn("columns that matter", lambda axes: draw_bars(axes, fit, verdict))
    agreement = _drawn(
        "predictions",
        lambda axes: draw_predictions(axes, fit, name, WIDE - 0.8),
        inches=WIDE + 0.7 * fit.rows.classify,
    )
    sure_of = "probabilities" if fit.rows.classify else "intervals"
    maps = {"Map": _maps(fit, report)}
    sections = {
        "Errors beside baselines": _table(text.header, text.methods)
        + errors
        + _lines([*no_errors, *text.errors, *text.best]),
        **({} if fit.surface is None else maps),
        "Predicted against actual values": agreement,
        f"Calibration of {sure_of}": calibration + _lines(text.sureness),
        "Which columns matter": bars + _lines(text.columns),
        "Effect of each column, and residuals by column": _effects(fit, report),
        **maps,  # those of errors alone; a surface keeps its place above
        "Settings and command": _settings(result, context),
        "What the fit says": _lines([*text.chosen, *text.notes]),
    }
    shown = [(f"part-{i}", *section) for i, section in enumerate(sections.items()) if section[1]]
    links = "".join(f'<a href="#{part}">{head}</a> ' for part, head, _ in shown)
    body = "\n".join(
        f'<section id="{part}"><h2>{head}</h2>\n{content}</section>'
        for part, head, content in shown
    )
    target = _escaped(result["target"])
    with replacing(path) as beside:
        beside.write_text(
            '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
            f"<title>{target}: a fit of gzkcore</title>\n<style>{STYLE}</style></head>\n"
            f"<body><main><h1>{target}</h1>\n{_lines([text.title])}<nav>{links}</nav>\n{body}\n"
            "</main></body></html>\n",
            encoding="utf-8",
        )


def _escaped(text: str) -> str:
    """Return a text as HTML."""
    return html.escape(printable(text))


def _lines(lines: list[str]) -> str:
    return "".join(f"<p>{_escaped(line)}</p>\n" for line in lines)


def _table(header: list[str], rows: list[list[str]]) -> str:
    """Return a table in whose narrow columns no number is parted from its unit."""
    rows = [
        [re.sub("(?<=<) | (?=%|s$)", "\N{NO-BREAK SPACE}", cell) for cell in row] for row in rows
    ]
    lines = [
        f"<tr>{''.join(f'<{tag}>{_escaped(cell)}</{tag}>' for cell in cells)}</tr>\n"
        for tag, cells in [("th", header), *(("td", row) for row in rows)]
    ]
    return f'<div class="wide"><table>{"".join(lines)}</table></div>\n' if rows else ""


def _drawn(about: str, draw: Callable[..., None], n_axes: int = 1, inches: float = WIDE) -> str:
    """Return a picture that is drawn on axes of so many inches, one below the other."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDE, inches), layout="constrained")
    draw(*figure.subplots(n_axes, 1, sharex=True, squeeze=False)[:, 0])
    return _figure(about, figure)


def _figure(about: str, figure: Any) -> str:
    """Return a picture, and in words what it shows, for those who can't see it."""
    label = f'<svg role="img" aria-label="{_escaped(about)}"'
    return f"<figure>{as_svg(figure).replace('<svg', label, 1)}</figure>\n"


def _effects(fit: "FrameFit", report: OnProgress) -> str:
    """Return pictures of the effects of the most important columns, and of errors along them."""
    places = fit.importances if fit.places is not None else place_names(fit.model)
    shares = {name: share for name, share in fit.importances.items() if name not in places}
    ordered = shares if fit.verdict is None else fit.verdict.shuffled
    names = [name for name in ordered if shares.get(name, 0.0) > 0]
    names, effects = names[:MOST_COLUMNS], []
    for done, name in enumerate(names):
        report("effects of columns", done / len(names), name)
        effects += [(name, effect) for effect in effects_of(fit, name)]
    ends = [(np.nanmin(c), np.nanmax(c)) for _, effect in effects for c in effect.curves.values()]
    limits = (np.min(ends), np.max(ends)) if ends else (0.0, 1.0)
    pictures = ""
    for name, effect in effects:
        draw = functools.partial(draw_column, fit, name, effect, limits)
        n_axes = 1 if fit.verdict is None else 2
        picture = _drawn(f"effect of {name}", draw, n_axes, 1.0 + 2.0 * n_axes)
        pictures += f"<div><h3>{_escaped(effect.heading(name))}</h3>{picture}</div>\n"
    about = ABOUT_EFFECTS
    if fit.verdict is not None:
        about += ABOUT_LOSSES if fit.rows.classify else ABOUT_ERRORS
    if effects and fit.rows.classify and fit.rows.rarer is None:
        pairs = zip(effects[0][1].curves, ("var(--line)", *COLORS[1:]), strict=False)
        dots = [f'<span style="color: {color}">●</span> {_escaped(name)}' for name, color in pairs]
        about += f"</p>\n<p>{_escaped(fit.rows.target)}: {' &nbsp; '.join(dots)}"
    return pictures and f'<p>{about}</p>\n<div class="columns">{pictures}</div>\n'


def _maps(fit: "FrameFit", report: OnProgress) -> str:
    """Return the map of the surface over the page's width, below it its deviations and errors."""
    errors = _map_of_errors(fit)
    if fit.surface is None:
        return errors
    report("drawing the map", None)
    target = as_written(fit.rows.target)
    of_target = functools.partial(maps_of, fit.surface, target, target)
    broad = _figure("map", next(of_target(BROAD)))
    narrow, *others = (_figure("map", figure) for figure in of_target(WIDE))
    return (
        f'<div class="broad">{broad}</div>\n<div class="narrow">{narrow}</div>\n'
        f'<div class="beside">{"".join(others)}{errors}</div>\n'
    )


def _map_of_errors(fit: "FrameFit") -> str:
    verdict = fit.verdict
    columns = fit.rows.test.columns
    numbers = [fit.rows.test[columns[i]] for i in place_columns(columns)]
    if verdict is None or [*map(kind_of, numbers)] != [NUMBER, NUMBER]:
        return ""
    places = np.column_stack(numbers)
    known = ~np.isnan(places).any(axis=1)
    if off_globe(places[known]) is not None or not known.any():
        return ""
    errors, classify = verdict.errors[known], fit.rows.classify
    return _figure("map of errors", map_of_errors(places[known], errors, classify, WIDE))


def _settings(result: dict[str, Any], context: Any) -> str:
    """Return the command, and what it and the fit were set to."""
    options = []
    for parameter in context.command.params:
        value = context.params.get(parameter.name)
        by_default = context.get_parameter_source(parameter.name).name == "DEFAULT"
        values = value if isinstance(value, list | tuple) else [value]
        shown = (one for one in map(str, values) if by_default and one not in ("None", "False"))
        options += [f"{parameter.opts[0]} {one}" for one in shown]
    constant = "the mean" if result["classes"] is None else "the frequencies of the classes"
    now = datetime.datetime.now().astimezone()
    settings = {
        "Columns": ", ".join(map(in_list, result["columns"])),
        "Left out": ", ".join(map(in_list, result["unused"])),
        "Options by default": "; ".join(options),
        "Learner": f"{result['learner']}, {result['chosen'] or constant}",
        "Lengthscales of the encoded columns": told_lengths(result["lengthscales"]),
        "Time": seconds_told(result["seconds"]),
        "Memory": f"{result['peak_memory_mb']:,.0f} MB",
        "Made": f"{now:%Y-%m-%d %H:%M %z}, with gzkcore {version('gzkcore')}",
    }
    rows = [
        f"<dt>{name}</dt><dd>{_escaped(text)}</dd>\n" for name, text in settings.items() if text
    ]
    return f"<pre>{html.escape(context.meta['command'])}</pre>\n<dl>{''.join(rows)}</dl>\n"
