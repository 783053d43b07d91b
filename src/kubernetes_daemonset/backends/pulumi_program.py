"""A whole Pulumi program: the stack input in, the agent deployed, the stack outputs out.

A Pulumi project's __main__.py calls `program`; `pulumi_project` has the files of such a project.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

# First: it says what to install where Pulumi is missing.
from kubernetes_daemonset.backends.pulumi import (
    PROVIDER_VERSION,
    KubernetesDaemonSetComponent,
    mistakes_end_the_run,
    planned,
)

# isort: split
import pulumi

from kubernetes_daemonset import stack_kubeconfig
from kubernetes_daemonset.api.shared.provider_pb2 import gcp_gke
from kubernetes_daemonset.backends import given
from kubernetes_daemonset.manifest import Loaded
from kubernetes_daemonset.mistakes import ManifestError, Mistake

_CONFIG: Final = ("planton-cloud", "stack-input")
_CONTENT: Final = "STACK_INPUT_YAML"
_FILE: Final = "STACK_INPUT_YAML_FILE"
_CONTEXT: Final = "KUBE_CTX"

_NO_GKE: Final = (
    "a service account's key does not open a GKE cluster by itself: another program has to make tokens of it, and none "
    "can be counted on where Pulumi runs; leave provider_config out, have gke-gcloud-auth-plugin in the kubeconfig, "
    f"and name its context in {_CONTEXT}"
)


def program() -> None:
    with mistakes_end_the_run():
        loaded = planned(stack_input(os.environ), "stack input").loaded
        told = connection(loaded, os.environ)
    provider = pulumi.ProviderResource(
        "kubernetes", "kubernetes", told, pulumi.ResourceOptions(version=PROVIDER_VERSION)
    )
    agent = KubernetesDaemonSetComponent(
        loaded.manifest.metadata.name, loaded, pulumi.ResourceOptions(providers=[provider])
    )
    for name, value in agent.stack_outputs.items():
        pulumi.export(name, value)


def stack_input(environment: Mapping[str, str]) -> Loaded:
    """The first of the three places that says anything."""
    project, key = _CONFIG
    if text := pulumi.Config(project).get(key):
        return _read(text, f"{project}:{key}")
    if text := environment.get(_CONTENT):
        return _read(text, _CONTENT)
    if file := environment.get(_FILE):
        return given.read(Path(file), file)
    raise pulumi.RunError(
        f"there is no stack input: set it by `pulumi config set {project}:{key}`, or write it to the variable "
        f"{_CONTENT}, or the name of a file with it to the variable {_FILE}"
    )


def connection(loaded: Loaded, environment: Mapping[str, str]) -> dict[str, Any]:
    """What the Kubernetes provider is told: how to reach the cluster, and to apply on the server's side."""
    told: dict[str, Any] = {"enableServerSideApply": "true"}  # a provider's settings are texts
    if not loaded.input.HasField("provider_config"):
        context = environment.get(_CONTEXT)
        return told | ({"context": context} if context else {})
    if loaded.input.provider_config.provider == gcp_gke:
        raise _wrong(loaded, "provider_config.gcp_gke", _NO_GKE)
    return told | {"kubeconfig": pulumi.Output.secret(_kubeconfig(loaded, environment))}


def _read(text: str, source: str) -> Loaded:
    return given.read(f"{text}\n", source)  # one line alone would be taken for a path


def _kubeconfig(loaded: Loaded, environment: Mapping[str, str]) -> str:
    """Never the text that was given, unless the environment trusts it: see `stack_kubeconfig`."""
    encoded = loaded.input.provider_config.digital_ocean_doks.kube_config
    if found := stack_kubeconfig.problems(encoded, environment):
        path = "provider_config.digital_ocean_doks.kube_config"
        raise ManifestError([Mistake(path, text, loaded.place(path)) for text in found])
    return stack_kubeconfig.for_provider(encoded, environment)


def _wrong(loaded: Loaded, path: str, text: str) -> ManifestError:
    return ManifestError([Mistake(path, text, loaded.place(path))])
