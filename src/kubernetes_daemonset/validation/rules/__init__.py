"""Rules that the .proto files cannot express: those that span fields, compare quantities, or warn about valid values.

A rule takes the manifest and yields findings; a finding has the path of the field, by which its line is found. Errors
are what an API server would reject, found before it is called, and what it accepts although it cannot work. The lists
are the specification; each rule is in the module of its subject.
"""

from dataclasses import replace
from typing import Final

from kubekit.diagnostics import Severity
from kubernetes_daemonset.api.v1.stack_input_pb2 import KubernetesDaemonSetStackInput
from kubernetes_daemonset.validation.rules import (
    containers,
    environment,
    images,
    labels,
    network,
    objects,
    resources,
    security,
    volumes,
)
from kubernetes_daemonset.validation.rules.finding import Finding

__all__ = ["ERRORS", "WARNINGS", "Finding", "findings"]

ERRORS: Final = (
    environment.references_are_resolved,
    environment.secrets_are_near,
    environment.variables_are_given_once,
    environment.amounts_are_of_containers,
    images.images_can_be_read,
    containers.containers_have_names_of_their_own,
    containers.init_containers_can_start,
    containers.probes_fit,
    containers.hooks_end_in_time,
    network.ports_differ,
    network.ports_of_the_node_differ,
    volumes.volumes_have_one_description,
    volumes.mounts_fit,
    volumes.files_have_keys,
    volumes.folders_have_a_size,
    resources.valid_quantities,
    resources.requests_stay_below_limits,
    resources.other_resources_have_names,
    resources.devices_are_whole,
    resources.huge_pages_fit,
    labels.valid_labels,
    labels.annotations_have_names,
    labels.affinity_is_about_labels,
    labels.own_labels_stay_ours,
    labels.tolerations_name_taints,
    objects.objects_have_names,
    objects.data_is_not_too_large,
    objects.annotations_are_not_too_large,
    objects.annotated_accounts_are_made,
    security.processes_are_shared_once,
)
WARNINGS: Final = (
    environment.secrets_are_empty,
    environment.used_variables_are_defined,
    containers.probed_ports_exist,
    images.images_may_change,
    network.ports_outlive_a_surge,
    network.names_resolve,
    objects.targets_choose_nothing,
    objects.required_agents_are_not_awaited,
    resources.memory_is_not_limited,
    security.root_is_refused,
    security.privileges_are_not_needed,
    security.capabilities_are_known,
    security.rights_in_a_namespace_are_about_it,
)


def findings(stack_input: KubernetesDaemonSetStackInput) -> list[Finding]:
    manifest = stack_input.target
    wrong = [finding for rule in ERRORS for finding in rule(manifest)]
    unwise = [replace(finding, severity=Severity.WARNING) for rule in WARNINGS for finding in rule(manifest)]
    return [*wrong, *objects.valid_docker_config(stack_input), *unwise]
