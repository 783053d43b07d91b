"""The files of a Pulumi project that deploys a stack input. Generated without Pulumi."""

from importlib.metadata import version
from typing import Final

_PROJECT: Final = """\
name: kubernetes-daemonset
description: A node agent, declared by a KubernetesDaemonSet manifest
runtime:
  name: python
  options:
    toolchain: pip
    virtualenv: venv
"""

_PROGRAM: Final = '''\
"""Deploy the KubernetesDaemonSet of the stack input.

The stack input is the value of `planton-cloud:stack-input`, or else the variable STACK_INPUT_YAML, or else the file
that STACK_INPUT_YAML_FILE names. Without a provider_config in it, KUBE_CTX names the kubeconfig's context.
"""

from kubernetes_daemonset.backends.pulumi_program import program

program()
'''


def project_files() -> dict[str, str]:
    """Return the content of each file by name."""
    return {
        "Pulumi.yaml": _PROJECT,
        "__main__.py": _PROGRAM,
        "requirements.txt": f"kube-node-ready[pulumi]=={version('kube-node-ready')}\n",
    }
