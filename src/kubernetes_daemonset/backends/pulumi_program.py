"""A complete Pulumi program: reads the stack input, deploys the agent and exports the stack outputs.

The __main__.py of a Pulumi project calls `program`; `pulumi_project` has the files of such a project.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

# First: it reports what to install if Pulumi is missing.
from kubernetes_daemonset.backends.pulumi import (
    PROVIDER_VERSION,
    KubernetesDaemonSetComponent,
    mistakes_end_the_run,
    planned,
)

# isort: split
import pulumi

from kubekit.diagnostics import Diagnostic
from kubernetes_daemonset.api.shared.provider_pb2 import gcp_gke
from kubernetes_daemonset.deploy import loader
from kubernetes_daemonset.errors import ManifestError
from kubernetes_daemonset.manifest import stack_kubeconfig
from kubernetes_daemonset.manifest.reader import Loaded

_CONFIG: Final = ("planton-cloud", "stack-input")
_CONTENT: Final = "STACK_INPUT_YAML"
_FILE: Final = "STACK_INPUT_YAML_FILE"
_CONTEXT: Final = "KUBE_CTX"

_NO_GKE: Final = (
    "a service account key is not sufficient to log in to GKE: a program must exchange it for a token, and "
    "none is guaranteed to be installed; remove provider_config, use gke-gcloud-auth-plugin in the kubeconfig, "
    f"and set {_CONTEXT} to its context"
)


def program() -> None:
    with mistakes_end_the_run():
        loaded = planned(stack_input(os.environ), "stack input").loaded
        settings = connection(loaded, os.environ)
    provider = pulumi.ProviderResource(
        "kubernetes", "kubernetes", settings, pulumi.ResourceOptions(version=PROVIDER_VERSION)
    )
    agent = KubernetesDaemonSetComponent(
        loaded.manifest.metadata.name, loaded, pulumi.ResourceOptions(providers=[provider])
    )
    for name, value in agent.stack_outputs.items():
        pulumi.export(name, value)


def stack_input(environment: Mapping[str, str]) -> Loaded:
    """Return the stack input from the first of its three sources that is set."""
    project, key = _CONFIG
    if text := pulumi.Config(project).get(key):
        return _read(text, f"{project}:{key}")
    if text := environment.get(_CONTENT):
        return _read(text, _CONTENT)
    if file := environment.get(_FILE):
        return loader.read(Path(file), file)
    raise pulumi.RunError(
        f"there is no stack input; set it with `pulumi config set {project}:{key}`, or in the environment variable "
        f"{_CONTENT}, or set {_FILE} to the name of a file"
    )


def connection(loaded: Loaded, environment: Mapping[str, str]) -> dict[str, Any]:
    """Return the settings of the Kubernetes provider: the connection to the cluster, and server-side apply."""
    options: dict[str, Any] = {"enableServerSideApply": "true"}  # a provider's settings are strings
    if not loaded.input.HasField("provider_config"):
        context = environment.get(_CONTEXT)
        return options | ({"context": context} if context else {})
    if loaded.input.provider_config.provider == gcp_gke:
        raise _wrong(loaded, "provider_config.gcp_gke", _NO_GKE)
    return options | {"kubeconfig": pulumi.Output.secret(_kubeconfig(loaded, environment))}


def _read(text: str, source: str) -> Loaded:
    return loader.read(f"{text}\n", source)  # a single line would be read as a path


def _kubeconfig(loaded: Loaded, environment: Mapping[str, str]) -> str:
    """Return the checked kubeconfig, or the original text if the environment trusts it: see `stack_kubeconfig`."""
    encoded = loaded.input.provider_config.digital_ocean_doks.kube_config
    if problems := stack_kubeconfig.problems(encoded, environment):
        path = "provider_config.digital_ocean_doks.kube_config"
        raise ManifestError([Diagnostic(path, text, loaded.location(path)) for text in problems])
    return stack_kubeconfig.for_provider(encoded, environment)


def _wrong(loaded: Loaded, path: str, text: str) -> ManifestError:
    return ManifestError([Diagnostic(path, text, loaded.location(path))])
