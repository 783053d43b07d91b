"""All that is wrong with a manifest, at once: what could not be read, what the .proto files refuse, what `rules` find.

Each with its field's line. What may only follow from something that could not be read is left out: who wrote `imagee`
knows that there is no image.
"""

import functools
import os
from collections.abc import Iterable
from typing import cast

import protovalidate
from google.protobuf.descriptor import Descriptor

from kubernetes_daemonset import rules, stack_kubeconfig
from kubernetes_daemonset.api.v1.stack_input_pb2 import KubernetesDaemonSetStackInput
from kubernetes_daemonset.manifest import Loaded, entry, upwards
from kubernetes_daemonset.mistakes import Mistake, Severity


def validate(loaded: Loaded) -> list[Mistake]:
    """Errors and warnings, in the order in which the manifest is written."""
    broken = [*_broken_rules(loaded), *rules.findings(loaded.input), *_untrusted_kubeconfig(loaded)]
    found = _certain(broken, loaded.unread)
    mistakes = [Mistake(one.path, one.text, loaded.place(one.path), one.severity) for one in found]
    once = dict.fromkeys([*loaded.mistakes, *mistakes])
    return sorted(once, key=lambda one: (one.place.line, one.place.column, one.path))


def errors(mistakes: Iterable[Mistake]) -> list[Mistake]:
    return [one for one in mistakes if one.severity is Severity.ERROR]


def _certain(found: list[rules.Finding], unread: frozenset[str]) -> list[rules.Finding]:
    """Those that would be found however the fields that could not be read were written."""
    around = {path for one in unread for path in upwards(one)}

    def is_known(path: str) -> bool:
        return path not in around and unread.isdisjoint(upwards(path))

    return [one for one in found if all(map(is_known, (one.path, *one.because)))]


def _broken_rules(loaded: Loaded) -> list[rules.Finding]:
    found = []
    for violation in _validator().collect_violations(loaded.input):
        where = violation.proto.field
        path, choices = _path(where.elements if where else [], _root())
        text = violation.proto.message
        if violation.proto.rule_id == "required":
            text = f"needs one of {', '.join(choices)}" if choices else "is required"
        found.append(rules.Finding(path.removeprefix("target."), text))
    return found


def _untrusted_kubeconfig(loaded: Loaded) -> list[rules.Finding]:
    """Checked for every backend, though only Pulumi uses it: a stack input must not depend on who reads it."""
    encoded = loaded.input.provider_config.digital_ocean_doks.kube_config
    if not encoded:
        return []
    texts = stack_kubeconfig.problems(encoded, os.environ)
    return [rules.Finding("provider_config.digital_ocean_doks.kube_config", text) for text in texts]


def _path(elements: Iterable[protovalidate.FieldPathElementPb], message: Descriptor) -> tuple[str, list[str]]:
    """Where a rule was broken, and what to choose from if it is a choice that was not made."""
    path = ""
    for element in elements:
        what = message.fields_by_name.get(element.field_name)
        if what is None:
            return path, [member.name for member in message.oneofs_by_name[element.field_name].fields]
        path = f"{path}.{element.field_name}" if path else element.field_name
        message = what.message_type
        if subscript := element.subscript:
            if subscript.field == "index":
                path = f"{path}[{subscript.value}]"
            else:
                path = entry(path, str(subscript.value))
                message = message.fields_by_name["value"].message_type
    return path, []


def _root() -> Descriptor:
    return cast("Descriptor", KubernetesDaemonSetStackInput.DESCRIPTOR)


@functools.cache
def _validator() -> protovalidate.Validator:
    """Compiles a message's rules when it first sees the message; kept, so that it does so once."""
    return protovalidate.Validator()
