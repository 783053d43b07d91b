"""(arrives with its own landing)"""

from kubernetes_daemonset.api.v1.stack_input_pb2 import KubernetesDaemonSetStackInput


def module(given: KubernetesDaemonSetStackInput) -> dict[str, str]:
    raise NotImplementedError
