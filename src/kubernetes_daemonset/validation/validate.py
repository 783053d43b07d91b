"""Validate a manifest: report syntax errors, violations of the .proto files and findings of `rules` together.

Every diagnostic has the line of its field. Those that could be consequences of an unreadable field are left out: if you
wrote `imagee`, a second error about a missing image does not help.
"""

import functools
import os
from collections.abc import Iterable
from typing import cast

import protovalidate
from google.protobuf.descriptor import Descriptor

from kubekit.diagnostics import Diagnostic, Severity
from kubernetes_daemonset.api.v1.stack_input_pb2 import KubernetesDaemonSetStackInput
from kubernetes_daemonset.manifest import stack_kubeconfig
from kubernetes_daemonset.manifest.reader import Loaded, ancestors, map_entry
from kubernetes_daemonset.manifest.secret_fields import masked
from kubernetes_daemonset.validation import rules


def validate(loaded: Loaded) -> list[Diagnostic]:
    """Return errors and warnings in the order of the manifest."""
    broken = [*_broken_rules(loaded), *rules.findings(loaded.input), *_untrusted_kubeconfig(loaded)]
    findings = _certain(broken, loaded.unreadable)
    diagnostics = [
        Diagnostic(*masked(finding.path, finding.text), loaded.location(finding.path), finding.severity)
        for finding in findings
    ]
    once = dict.fromkeys([*loaded.diagnostics, *diagnostics])
    return sorted(once, key=lambda diagnostic: (diagnostic.location.line, diagnostic.location.column, diagnostic.path))


def errors(diagnostics: Iterable[Diagnostic]) -> list[Diagnostic]:
    return [diagnostic for diagnostic in diagnostics if diagnostic.severity is Severity.ERROR]


def _certain(findings: list[rules.Finding], unreadable: frozenset[str]) -> list[rules.Finding]:
    """Return the findings that hold regardless of the values of the unreadable fields."""
    around = {path for field in unreadable for path in ancestors(field)}

    def is_known(path: str) -> bool:
        return path not in around and unreadable.isdisjoint(ancestors(path))

    return [finding for finding in findings if all(map(is_known, (finding.path, *finding.because)))]


def _broken_rules(loaded: Loaded) -> list[rules.Finding]:
    findings = []
    for violation in _validator().collect_violations(loaded.input):
        where = violation.proto.field
        path, choices = _path(where.elements if where else [], _root())
        text = violation.proto.message
        if violation.proto.rule_id == "required":
            text = f"needs one of {', '.join(choices)}" if choices else "is required"
        findings.append(rules.Finding(path.removeprefix("target."), text))
    return findings


def _untrusted_kubeconfig(loaded: Loaded) -> list[rules.Finding]:
    """Check the kubeconfig for every backend, although only Pulumi uses it: validity must not depend on the backend."""
    encoded = loaded.input.provider_config.digital_ocean_doks.kube_config
    if not encoded:
        return []
    texts = stack_kubeconfig.problems(encoded, os.environ)
    return [rules.Finding("provider_config.digital_ocean_doks.kube_config", text) for text in texts]


def _path(elements: Iterable[protovalidate.FieldPathElementPb], message: Descriptor) -> tuple[str, list[str]]:
    """Return the path of a violation, and the alternatives if a required choice is missing."""
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
                path = map_entry(path, str(subscript.value))
                message = message.fields_by_name["value"].message_type
    return path, []


def _root() -> Descriptor:
    return cast("Descriptor", KubernetesDaemonSetStackInput.DESCRIPTOR)


@functools.cache
def _validator() -> protovalidate.Validator:
    """Return the cached validator: it compiles the rules of a message when it first validates one."""
    return protovalidate.Validator()
