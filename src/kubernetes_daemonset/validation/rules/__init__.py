"""What the .proto files cannot say of a manifest: what spans fields, compares amounts, or is allowed and will hurt.

A rule takes the manifest and yields findings; a finding names the field, so that its line can be found. The errors are
those that an API server would answer with, found before it is asked, and what it would take though it cannot work. The
lists are the specification; each rule stands in the module of its subject.
"""

from dataclasses import replace
from typing import Final

from kubernetes_daemonset.api.v1.stack_input_pb2 import KubernetesDaemonSetStackInput
from kubernetes_daemonset.mistakes import Severity
from kubernetes_daemonset.rules import (
    amounts,
    containers,
    environment,
    images,
    labels,
    network,
    objects,
    security,
    volumes,
)
from kubernetes_daemonset.rules.finding import Finding

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
    amounts.amounts_are_amounts,
    amounts.requests_stay_below_limits,
    amounts.other_resources_have_names,
    amounts.devices_are_whole,
    amounts.huge_pages_fit,
    labels.labels_are_labels,
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
    amounts.memory_is_not_limited,
    security.root_is_refused,
    security.privileges_are_not_needed,
    security.capabilities_are_known,
    security.rights_in_a_namespace_are_about_it,
)


def findings(given: KubernetesDaemonSetStackInput) -> list[Finding]:
    manifest = given.target
    wrong = [one for rule in ERRORS for one in rule(manifest)]
    unwise = [replace(one, severity=Severity.WARNING) for rule in WARNINGS for one in rule(manifest)]
    return [*wrong, *objects.logins_are_logins(given), *unwise]
