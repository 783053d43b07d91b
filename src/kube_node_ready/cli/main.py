"""argv -> a verb. Modules are loaded when their verb is asked for: completion should not wait for a client."""

import argparse
import os
import sys
from collections.abc import Sequence
from io import TextIOWrapper
from pathlib import Path

from kube_node_ready.checks import table as checks
from kube_node_ready.console import completion
from kube_node_ready.console.parser import parsed, parser
from kube_node_ready.verbs import COMPLETE

OK, MISTAKE, NO_ACCESS, UNEXPECTED, INTERRUPTED, BROKEN_PIPE = 0, 2, 3, 10, 130, 141


def run(prog: str, words: Sequence[str]) -> int:
    """The exit code."""
    _prepare_streams()
    try:
        code = _run(prog, words)
        sys.stdout.flush()
    except BrokenPipeError:  # whoever read it has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception as why:  # noqa: BLE001  a mistake of ours, which is told in a sentence
        return _ended(prog, f"unexpected {type(why).__name__}: {why}", UNEXPECTED)
    return code


def _prepare_streams() -> None:
    """Whoever closed one wants nothing said there; and a terminal that has no … must not end us."""
    sys.stdout = sys.stdout or Path(os.devnull).open("w")  # noqa: SIM115  for as long as we live
    sys.stderr = sys.stderr or Path(os.devnull).open("w")  # noqa: SIM115  as above
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")


def _run(prog: str, words: Sequence[str]) -> int:
    if words[:1] == [COMPLETE]:
        return completion.complete(prog, words[1:])
    if words[:1] == ["check"] and not {"-h", "--help"} & set(words):
        return checks.main(words[1:])
    if not words:
        parser(prog).print_help()
        return OK
    options = parsed(prog, words)
    if options.verb == "completion":
        sys.stdout.write(completion.script(options.shell))
        return OK
    if options.verb == "config":
        from kube_node_ready.console import file_check  # noqa: PLC0415

        return file_check.run(options)
    return _ask_cluster(prog, options)


def _ask_cluster(prog: str, options: argparse.Namespace) -> int:
    from kube_node_ready.api_paths import InvalidNameError  # noqa: PLC0415
    from kube_node_ready.console import again, explain, halt, status  # noqa: PLC0415
    from kube_node_ready.console.mistakes import Mistake  # noqa: PLC0415
    from kube_node_ready.console.rights import NoAccess, told  # noqa: PLC0415
    from kube_node_ready.kube.errors import KubeError  # noqa: PLC0415

    verbs = {
        "status": status.run,
        "explain": explain.run,
        "verify": again.run,
        "pause": halt.run,
        "resume": halt.run,
    }
    try:
        return verbs[options.verb](options)
    except (Mistake, InvalidNameError) as error:
        return _ended(prog, str(error), MISTAKE)
    except NoAccess as why:
        return _ended(prog, str(why), NO_ACCESS)
    except KubeError as why:
        return _ended(prog, str(told(why)), NO_ACCESS)


def _ended(prog: str, sentence: str, code: int) -> int:
    sys.stdout.flush()
    from kube_node_ready.console import output  # noqa: PLC0415

    output.say(f"{prog}: {sentence}")
    return code
