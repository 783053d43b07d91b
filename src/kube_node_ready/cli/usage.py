"""Describe mistakes on the command line, which click detects, in the words that all programs use."""

from collections.abc import Iterable

import click

from kube_node_ready.commands import meant
from kubekit.suggestions import did_you_mean


def unknown_command(word: str, group: click.Context) -> click.UsageError:
    """Without a suggestion of a command that changes something."""
    nearest = meant(word) if group.parent is None else did_you_mean(word, _commands(group))
    return click.UsageError(f'unknown command "{word}"' + (f"; did you mean {nearest}?" if nearest else ""), group)


def missing_command(group: click.Context) -> click.UsageError:
    return click.UsageError(f"missing command; expected {' or '.join(_commands(group))}", group)


def unexpected_argument(word: str, context: click.Context) -> click.UsageError:
    return click.UsageError(f'unexpected argument "{word}"', context)


def sentence(error: click.UsageError) -> str:
    match error:
        case click.NoSuchOption():
            nearest = did_you_mean(error.option_name, _flags(error.ctx))
            return f"unknown flag {error.option_name}" + (f"; did you mean {nearest}?" if nearest else "")
        case click.MissingParameter(param=click.Parameter() as parameter):
            return f"missing argument {label(parameter)}"
        case click.BadParameter(param=click.Parameter() as parameter):
            return f"{label(parameter)}: {error.message}"
        case click.BadOptionUsage():
            takes = _takes_value(error.option_name, error.ctx)
            return f"{error.option_name}: " + ("is missing its value" if takes else "takes no value")
        case _:
            return error.message


def hint(error: click.UsageError, prog: str) -> str:
    path = error.ctx.command_path if error.ctx else prog
    return f"Run '{path} --help' for usage."


def label(parameter: click.Parameter) -> str:
    """Return the long form of an option, or the name of an argument as the usage shows it."""
    if isinstance(parameter, click.Option):
        return max(parameter.opts, key=len)
    return str(parameter.metavar or parameter.name or "").upper()


def _takes_value(name: str, context: click.Context | None) -> bool:
    options = [each for each in _parameters(context) if name in each.opts]
    return any(isinstance(option, click.Option) and not option.is_flag for option in options)


def _flags(context: click.Context | None) -> list[str]:
    return [
        name for parameter in _parameters(context) if isinstance(parameter, click.Option) for name in parameter.opts
    ]


def _parameters(context: click.Context | None) -> Iterable[click.Parameter]:
    return context.command.get_params(context) if context else ()


def _commands(context: click.Context) -> list[str]:
    assert isinstance(context.command, click.Group), "only a group has commands"
    return context.command.list_commands(context)
