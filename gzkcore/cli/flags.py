"""Commands whose help shows flags without a value, and arguments without braces."""

from typing import Any

from typer.core import TyperCommand, TyperGroup


def _without_values(parameters: list[Any]) -> list[Any]:
    for parameter in parameters:
        if getattr(parameter, "is_flag", False) and parameter.metavar is None:
            parameter.metavar = ""
    return parameters


class Command(TyperCommand):
    """A command."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters, --help among them."""
        return _without_values(super().get_params(ctx))

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return what follows the name in the line of usage; typer puts names in braces."""
        return [piece.strip("{}") for piece in super().collect_usage_pieces(ctx)]


class Group(TyperGroup):
    """The command that has the others."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters, --help among them."""
        return _without_values(super().get_params(ctx))
