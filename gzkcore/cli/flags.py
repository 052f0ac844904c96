"""Commands whose help shows flags without a value, and whose errors say what was given."""

import shlex
from typing import Any

from typer.core import TyperCommand, TyperGroup


def _given(parameter: Any, arguments: list[str]) -> str:
    """Return the last value that an option was given in the arguments, "" for none."""
    given = ""
    for place, argument in enumerate(arguments):
        name, equals, value = argument.partition("=")
        if name in parameter.opts:
            given = value if equals else "".join(arguments[place + 1 : place + 2])
    return given


def _wanted(parameter: Any) -> str:
    """Return which numbers an option takes, "" of one that takes others than numbers."""
    described = getattr(parameter, "type_descriptor", None)
    if described is not None:
        kind, bounds = getattr(described.annotation, "__name__", ""), parameter
    else:  # before typer 0.27 or so
        kind, bounds = parameter.type.name, parameter.type
    nouns = {"int": "a whole number", "flo": "a number"}  # integer and float are in both
    noun = nouns.get(kind[:3])
    if noun is None:
        return ""
    low, high = getattr(bounds, "min", None), getattr(bounds, "max", None)
    if low is None or high is None:
        return noun if low is None else f"{noun} >= {low:g}"
    return f"{noun} between {low:g} and {high:,g}"


def _columns_in(parameters: dict[str, Any]) -> str:
    """Say which columns the table of a command has, or why it can't be read."""
    from gzkcore.rows.files import open_table

    from .output import some_of

    try:
        table = open_table(parameters["data"])
    except (ValueError, OSError, ImportError) as error:
        return "" if isinstance(error, OSError) else f"{error}."
    return f"The columns of {table.path} are {some_of(table.names)}."


class _Flags:
    """What shows flags without a value."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters, --help among them."""
        parameters: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for parameter in parameters:
            if getattr(parameter, "is_flag", False) and parameter.metavar is None:
                parameter.metavar = ""
        return parameters


class Command(_Flags, TyperCommand):
    """A command."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments; complaints name the value, the columns or an example."""
        given = list(args)
        ctx.meta["command"] = f"{ctx.command_path} {shlex.join(given)}"
        try:
            return super().parse_args(ctx, args)
        except Exception as error:
            parameter = getattr(error, "param", None)
            if parameter is not None and type(error).__name__ == "MissingParameter":
                known = parameter.name == "target" and ctx.params.get("data")
                hint = _columns_in(ctx.params) if known else str(self.epilog or "")
                error.message = hint  # type: ignore[attr-defined]
            elif parameter is not None and (value := _given(parameter, given)):
                if wanted := _wanted(parameter):
                    raise ValueError(f"{parameter.opts[0]} must be {wanted}; got {value}") from None
                told = str(getattr(error, "message", ""))
                if value not in told:
                    told = f"{value}; {told[:1].lower()}{told[1:]}"
                    error.message = told  # type: ignore[attr-defined]
            raise

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return what follows the name in the line of usage; typer puts names in braces."""
        return [piece.strip("{}") for piece in super().collect_usage_pieces(ctx)]


class Group(_Flags, TyperGroup):
    """The command that has the others."""
