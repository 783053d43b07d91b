"""Commands on click that report mistakes on the command line in the same words.

Imported by the command lines only, because click is an extra of the distribution.
"""

from collections.abc import Collection, Iterable
from typing import Any

import click

from kubekit import durations
from kubekit.suggestions import did_you_mean


class _Parses(click.Command):
    """Name the command in every usage error; the parser's own do not."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            error.ctx = error.ctx or ctx
            raise


class Command(_Parses):
    """A command that takes no arguments besides the declared ones."""

    @property
    def remedy(self) -> str:
        """What to do about an unexpected argument."""
        return ""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Report unexpected arguments; click has no exception of its own for them."""
        ctx.allow_extra_args = True
        super().parse_args(ctx, args)
        if ctx.args and not ctx.resilient_parsing:
            raise unexpected_argument(ctx.args[0], ctx, self.remedy)
        return ctx.args


class Group(_Parses, click.Group):
    """Commands in the order of their definition."""

    command_class = Command
    changing: Collection[str] = ()
    """The commands that change something: a typo must not lead to them."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args and not ctx.resilient_parsing:
            raise click.UsageError(f"missing command; expected {' or '.join(self.commands)}", ctx)
        return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in self.commands and not ctx.resilient_parsing:
            nearest = _nearest(args[0], self.commands)
            raise click.UsageError(
                f'unknown command "{args[0]}"{_suggestion(None if nearest in self.changing else nearest)}', ctx
            )
        return super().resolve_command(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  click's
        return list(self.commands)


class OneOf(click.Choice[str]):
    def get_invalid_choice_message(self, value: Any, ctx: click.Context | None) -> str:  # noqa: ANN401, ARG002  click's
        return f'"{value}" is invalid; expected {durations.listed(list(self.choices), "or")}'


def unexpected_argument(word: str, context: click.Context, remedy: str = "") -> click.UsageError:
    return click.UsageError(f'unexpected argument "{word}"{remedy}', context)


def describe(error: click.UsageError) -> str:
    """Return the mistake in one sentence, and where the usage is shown."""
    assert error.ctx, "commands name themselves in every error"
    return f"{_sentence(error)}\nRun '{error.ctx.command_path} --help' for usage."


def _sentence(error: click.UsageError) -> str:
    match error:
        case click.NoSuchOption():
            return f"unknown flag {error.option_name}{_suggestion(_nearest(error.option_name, _long_flags(error.ctx)))}"
        case click.MissingParameter(param=click.Parameter() as parameter):
            return f"missing {'flag' if isinstance(parameter, click.Option) else 'argument'} {_label(parameter)}"
        case click.BadParameter(param=click.Parameter() as parameter):
            return f"{_label(parameter)}: {error.message}"
        case click.BadOptionUsage():
            option = next(option for option in _options(error.ctx) if error.option_name in option.opts)
            return f"{_label(option)}: {'takes no value' if option.is_flag else 'is missing its value'}"
        case _:
            return error.message


def _label(parameter: click.Parameter) -> str:
    """Return the long form of an option, or the name of an argument as the usage shows it."""
    if isinstance(parameter, click.Option):
        return max(parameter.opts, key=len)
    return str(parameter.metavar or parameter.name or "").upper()


def _nearest(word: str, known: Iterable[str]) -> str | None:
    known = list(known)
    beginning = [name for name in known if name.startswith(word)]
    return beginning[0] if len(beginning) == 1 else did_you_mean(word, known)


def _suggestion(nearest: str | None) -> str:
    return f"; did you mean {nearest}?" if nearest else ""


def _long_flags(context: click.Context | None) -> list[str]:
    return [name for option in _options(context) for name in option.opts if name.startswith("--")]


def _options(context: click.Context | None) -> list[click.Option]:
    parameters = context.command.get_params(context) if context else ()
    return [parameter for parameter in parameters if isinstance(parameter, click.Option)]
