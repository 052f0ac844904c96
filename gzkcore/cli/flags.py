"""Commands whose help shows flags without a value, and whose errors quote the value."""

import itertools
import shlex
from typing import Any

from typer.core import TyperCommand, TyperGroup

from gzkcore._util.wording import meant, nearest, some_of


def _value_in(arguments: list[str], parameter: Any) -> str:
    """Return the last value of an option in the arguments, "" if there is none."""
    last = ""
    for place, argument in enumerate(arguments):
        name, equals, value = argument.partition("=")
        if name in parameter.opts:
            last = value if equals else "".join(arguments[place + 1 : place + 2])
    return last


def _numbers_for(parameter: Any) -> str:
    """Say which numbers an option takes; "" if it takes no numbers."""
    described = getattr(parameter, "type_descriptor", None)
    if described is not None:
        kind, bounds = getattr(described.annotation, "__name__", ""), parameter
    else:  # before typer 0.27 or so
        kind, bounds = parameter.type.name, parameter.type
    noun = {"int": "a whole number", "flo": "a number"}.get(kind[:3])  # int, integer; float
    if noun is None:
        return ""
    low, high = getattr(bounds, "min", None), getattr(bounds, "max", None)
    if low is None or high is None:
        return noun if low is None else f"{noun} >= {low:g}"
    return f"{noun} between {low:g} and {high:,g}"


def _columns_in(parameters: dict[str, Any]) -> str:
    """Say which columns the table of a command has, or why it can't be read."""
    from gzkcore.rows.files import open_table

    from .output import MOST_NAMED

    try:
        table = open_table(parameters["data"])
    except (ValueError, OSError, ImportError) as error:
        return "" if isinstance(error, OSError) else f"{error}."
    return f"The columns of {table.path} are {some_of(table.names, MOST_NAMED)}."


class _Flags:
    """Shows flags without a value."""

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
        """Read the arguments; errors name the value, the columns or an example."""
        arguments = list(args)
        ctx.meta["command"] = f"{ctx.command_path} {shlex.join(arguments)}"
        options = {name: each for each in self.get_params(ctx) for name in each.opts}
        for name, value in itertools.pairwise(arguments):
            lacks = name in options and value.startswith("--") and value in options
            if lacks and not getattr(options[name], "is_flag", True):
                raise ValueError(f"{name} has no value before {value}. {options[name].help}")
        try:
            return super().parse_args(ctx, args)
        except Exception as error:
            parameter = getattr(error, "param", None)
            unknown = getattr(error, "option_name", "") if hasattr(error, "possibilities") else ""
            if unknown:
                near = nearest(unknown.strip("-"), (name.strip("-") for name in options))
                error.possibilities = [f"--{near}"] if near else []  # type: ignore[attr-defined]
            if parameter is not None and type(error).__name__ == "MissingParameter":
                has_table = parameter.name == "target" and ctx.params.get("data")
                hint = _columns_in(ctx.params) if has_table else str(self.epilog or "")
                error.message = hint  # type: ignore[attr-defined]
            elif parameter is not None and (value := _value_in(arguments, parameter)):
                if numbers := _numbers_for(parameter):
                    name = parameter.opts[0]
                    raise ValueError(f"{name} must be {numbers}; got {value}") from None
                reason = str(getattr(error, "message", ""))
                if value not in reason:
                    reason = f"{value}; {reason[:1].lower()}{reason[1:]}"
                    error.message = reason  # type: ignore[attr-defined]
            raise

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the parameters in the line of usage, without the braces of typer."""
        return [piece.strip("{}") for piece in super().collect_usage_pieces(ctx)]


class Group(_Flags, TyperGroup):
    """The command `gzkcore`, whose commands are the others."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command that is named; the error of an unknown one lists all."""
        if args and args[0] not in self.commands and not ctx.resilient_parsing:
            near, names = meant(args[0], self.commands), ", ".join(self.commands)
            raise ValueError(f"there is no command {args[0]!r}{near}; use one of {names}")
        return super().resolve_command(ctx, args)
