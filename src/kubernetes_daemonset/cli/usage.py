"""Report mistakes on the command line, which click finds, in the words of all programs of this project."""

from collections.abc import Iterable
from typing import Any

import click

from kubekit.suggestions import did_you_mean


class Command(click.Command):
    """A command that takes no arguments besides the declared ones."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Report unexpected arguments; click has no exception of its own for them."""
        ctx.allow_extra_args = True
        _named(super().parse_args, ctx, args)
        if ctx.args and not ctx.resilient_parsing:
            remedy = "; pass manifests with -f" if "-f" in _flags(ctx) else ""
            raise click.UsageError(f'unexpected argument "{ctx.args[0]}"{remedy}', ctx)
        return ctx.args


class Group(click.Group):
    """Commands in the order of their definition."""

    command_class = Command

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return _named(super().parse_args, ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in self.commands and not ctx.resilient_parsing:
            raise click.UsageError(f'unknown command "{args[0]}"{_meant(args[0], self.commands)}', ctx)
        return super().resolve_command(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's
        return list(self.commands)


class OneOf(click.Choice[str]):
    """Some words, of which the first is the default."""

    def get_invalid_choice_message(self, value: Any, ctx: click.Context | None) -> str:  # noqa: ANN401, ARG002 - click's
        *others, last = self.choices
        return f'"{value}" is invalid; expected {", ".join(others)} or {last}'


def describe(error: click.UsageError) -> str:
    """Return the mistake in one sentence, and where the usage is shown."""
    assert error.ctx, "_named and click's own errors have one"
    return f"{_sentence(error)}\nRun '{error.ctx.command_path} --help' for usage."


def _sentence(error: click.UsageError) -> str:
    match error:
        case click.NoSuchOption():
            return f"unknown flag {error.option_name}{_meant(error.option_name, _flags(error.ctx))}"
        case click.MissingParameter(param=click.Parameter() as parameter):
            return f"missing {'flag' if isinstance(parameter, click.Option) else 'argument'} {_name(parameter)}"
        case click.BadParameter(param=click.Parameter() as parameter):
            return f"{_name(parameter)}: {error.message}"
        case click.BadOptionUsage():
            option = _option(error)
            return f"{_name(option)}: {'takes no value' if option.is_flag else 'is missing its value'}"
        case _:
            return error.message


def _named(parse: Any, ctx: click.Context, args: list[str]) -> list[str]:  # noqa: ANN401 - a bound method of click
    """Parse. The parser's own errors do not name the command."""
    try:
        parsed: list[str] = parse(ctx, args)
    except click.UsageError as error:
        error.ctx = error.ctx or ctx
        raise
    return parsed


def _name(parameter: click.Parameter) -> str:
    return max(parameter.opts, key=len) if isinstance(parameter, click.Option) else str(parameter.name).upper()


def _option(error: click.BadOptionUsage) -> click.Option:
    return next(option for option in _options(error.ctx) if error.option_name in option.opts)


def _flags(ctx: click.Context | None) -> list[str]:
    return [name for option in _options(ctx) for name in option.opts]


def _options(ctx: click.Context | None) -> list[click.Option]:
    return [each for each in (ctx.command.get_params(ctx) if ctx else ()) if isinstance(each, click.Option)]


def _meant(word: str, known: Iterable[str]) -> str:
    known = [name for name in known if not name.startswith("-") or name.startswith("--")]
    begun = [candidate for candidate in known if candidate.startswith(word)]
    near = begun[0] if len(begun) == 1 else did_you_mean(word, known)
    return f"; did you mean {near}?" if near else ""
