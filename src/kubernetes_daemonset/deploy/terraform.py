"""Generate a Terraform module, in Terraform's JSON syntax, that applies the objects of `resources.render`.

Each object is in a file of its own. In a .tf.json file every string is a template, and the `${HOME}` of a script
would be an expression; `file()` returns the text unmodified. Almost: Terraform converts all text to Unicode's normal
form C, so a decomposed é becomes composed. The files are therefore ASCII, with escapes for everything else.

Secrets are the value of a sensitive variable, in a file that Terraform reads automatically: the rest can be
reviewed and committed, and no plan prints them. Terraform's state still contains them, like every attribute; keep it
where secrets are safe.

The connection to the cluster is configured with the provider's variables, such as KUBECONFIG and KUBE_CTX.
"""

import json
import re
from collections.abc import Mapping
from typing import Final

from kubekit.diagnostics import Diagnostic, Location
from kubernetes_daemonset.api.v1.stack_input_pb2 import KubernetesDaemonSetStackInput
from kubernetes_daemonset.deploy.dependencies import depends_on
from kubernetes_daemonset.errors import ManifestError
from kubernetes_daemonset.manifest.dump import ascii_yaml
from kubernetes_daemonset.render import naming
from kubernetes_daemonset.render.resources import render
from kubernetes_daemonset.types import Json

# Not that of a direct apply: each tool changes and deletes only its own objects, which it recognizes by this name.
FIELD_MANAGER: Final = f"{naming.MANAGED_BY}-terraform"
MAIN_FILE: Final = "main.tf.json"
SECRETS_FILE: Final = "terraform.tfvars.json"  # readable only by its owner

_VERSIONS: Final = {
    "terraform": {
        "required_version": ">= 1.1.0",
        # The first version of this fork that waits for DaemonSets.
        "required_providers": {"kubectl": {"source": "alekc/kubectl", "version": "~> 2.1"}},
    }
}
# The number of ready pods is not among them: the resource does not report it, and with autoscaled nodes no plan would
# ever be empty.
_OUTPUTS: Final = {
    "namespace": {
        "description": "The namespace that the DaemonSet is in.",
        "value": "${kubectl_manifest.daemon_set.namespace}",
    },
    "daemonset_name": {"description": "The DaemonSet's name.", "value": "${kubectl_manifest.daemon_set.name}"},
}
_VARIABLES: Final[Json] = {
    "wait_for_rollout": {
        "description": "Whether an apply waits until the agent runs on every node that should have it.",
        "type": "bool",
        "default": True,
        "nullable": False,
    },
    "force_conflicts": {
        "description": "Whether to override fields that another manager has changed. Otherwise the apply fails.",
        "type": "bool",
        "default": False,
        "nullable": False,
    },
}
_DELETE_NAMESPACE: Final = {
    "description": "Whether a destroy deletes the namespace, and all that is in it. Apply this before you destroy.",
    "type": "bool",
    "default": False,
    "nullable": False,
}
_SECRETS: Final = {
    "description": "The manifests of the Secrets, by name.",
    "type": "map(string)",
    "nullable": False,
    "sensitive": True,
}

_FILE_IN_BODY: Final = re.compile(r'\$\{file\("\$\{path\.module\}/([a-z0-9_-]+\.yaml)"\)\}')
_MANY: Final = {"ConfigMap", "Secret"}  # kinds of which there can be more than one
# The provider passes its input on as YAML, which cannot contain these: it fails, or drops U+0085 silently.
_LOST: Final = re.compile(r"[\x7f-\x9f\ufeff\ufffe\uffff]")


def module(stack_input: KubernetesDaemonSetStackInput) -> dict[str, str]:
    """Return content by file name. The secrets file is always included, so that an empty one replaces an old one."""
    objects = {_resource_name(body): body for body in render(stack_input)}
    if lost := [diagnostic for body in objects.values() if (diagnostic := _lost(body))]:
        raise ManifestError(lost)
    secrets = {body["metadata"]["name"]: ascii_yaml(body) for body in objects.values() if _is_secret(body)}
    variables = (
        _VARIABLES
        | ({"delete_namespace": _DELETE_NAMESPACE} if "namespace" in objects else {})
        | ({"secrets": _SECRETS} if secrets else {})
    )
    return {
        "versions.tf.json": _json(_VERSIONS),
        "variables.tf.json": _json({"variable": variables}),
        MAIN_FILE: _json({"resource": {"kubectl_manifest": _resources(objects)}}),
        "outputs.tf.json": _json({"output": _OUTPUTS}),
        SECRETS_FILE: _json({"secrets": secrets} if secrets else {}),
        **{_file(name): ascii_yaml(body) for name, body in objects.items() if not _is_secret(body)},
    }


def files_named_in(main: str) -> list[str]:
    """Return the object files that a main file of this tool reads; none for any other main file."""
    try:
        resources = json.loads(main)["resource"]["kubectl_manifest"].values()
        ours = [resource["yaml_body"] for resource in resources if resource["field_manager"] == FIELD_MANAGER]
        return [found[1] for body in ours if (found := _FILE_IN_BODY.fullmatch(body))]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return []


def _resources(objects: Mapping[str, Json]) -> Json:
    blocks: Json = {}
    for name, body in objects.items():
        needed = [other for other in blocks if depends_on(body, objects[other])]
        blocks[name] = {
            "yaml_body": _body(name, body),
            "server_side_apply": True,
            "field_manager": FIELD_MANAGER,
            "force_conflicts": "${var.force_conflicts}",
            **_by_kind(body),
            **({"depends_on": [f"kubectl_manifest.{other}" for other in needed]} if needed else {}),
        }
    return blocks


def _body(name: str, body: Json) -> str:
    if _is_secret(body):
        return f'${{var.secrets["{body["metadata"]["name"]}"]}}'
    return f'${{file("${{path.module}}/{_file(name)}")}}'


def _by_kind(body: Json) -> Json:
    match body["kind"]:
        case "Secret":
            return {"sensitive_fields": ["data"]}
        case "Namespace":
            # It can be shared. A destroy waits until it is gone, because nothing can be created in a terminating one.
            return {"apply_only": "${!var.delete_namespace}", "wait": True}
        case "DaemonSet":
            return {
                "wait_for_rollout": "${var.wait_for_rollout}",
                "wait": True,  # a destroy removes the agent's permissions and files after its last pod has stopped
            }
        case _:
            return {}


def _resource_name(body: Json) -> str:
    """Return a resource name that depends only on the object's own name. Names of objects have no `_`."""
    kind = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", body["kind"]).lower()
    return f"{kind}_{body['metadata']['name'].replace('.', '_')}" if body["kind"] in _MANY else kind


def _file(name: str) -> str:
    return f"{name}.yaml"


def _is_secret(body: Json) -> bool:
    return bool(body["kind"] == "Secret")


def _lost(body: Json) -> Diagnostic | None:
    if not (letters := sorted({f"U+{ord(letter):04X}" for letter in _LOST.findall(_json(body))})):
        return None
    text = f"Terraform's provider does not support {', '.join(letters)}; remove it or deploy without Terraform"
    return Diagnostic("", text, Location(f"{body['kind']} {body['metadata']['name']}"))


def _json(content: Json) -> str:
    return json.dumps(content, ensure_ascii=False, indent=2) + "\n"
