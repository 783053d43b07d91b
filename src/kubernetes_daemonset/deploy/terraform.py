"""Message -> a Terraform module, in Terraform's JSON syntax, that applies what `resources.render` gives.

Each object stands in a file of its own. In a .tf.json file every string is a template, and the `${HOME}` of a script
would be an expression; `file()` gives a text back as it is. Almost: Terraform brings all text into Unicode's normal
form C, so that a decomposed é comes out composed. The files are therefore ASCII, with escapes for all else.

Secrets are the value of a sensitive variable, in a file that Terraform reads by itself: the rest of the module can be
reviewed and committed, and no plan prints them. Terraform's state has them all the same, as it has every attribute;
keep it where secrets may be kept.

How to reach the cluster is left to the provider's own variables: KUBECONFIG, KUBE_CTX and the like.
"""

import json
import re
from collections.abc import Mapping
from typing import Final

from kubernetes_daemonset import names
from kubernetes_daemonset.api.v1.stack_input_pb2 import KubernetesDaemonSetStackInput
from kubernetes_daemonset.backends.order import needs
from kubernetes_daemonset.dump import ascii_yaml
from kubernetes_daemonset.mistakes import ManifestError, Mistake, Place
from kubernetes_daemonset.objects import Json
from kubernetes_daemonset.resources import render

# Not that of a direct apply: each tool changes and deletes what it made itself, and knows it by this name.
FIELD_MANAGER: Final = f"{names.MANAGED_BY}-terraform"
MAIN_FILE: Final = "main.tf.json"
SECRETS_FILE: Final = "terraform.tfvars.json"  # for its owner's eyes only

_VERSIONS: Final = {
    "terraform": {
        "required_version": ">= 1.1.0",
        # The first version of this fork that waits for DaemonSets.
        "required_providers": {"kubectl": {"source": "alekc/kubectl", "version": "~> 2.1"}},
    }
}
# How many pods are ready is not among them: the resource does not tell, and where nodes come and go by themselves, no
# plan would ever be empty.
_OUTPUTS: Final = {
    "namespace": {
        "description": "The namespace that the DaemonSet is in.",
        "value": "${kubectl_manifest.daemon_set.namespace}",
    },
    "daemonset_name": {"description": "The DaemonSet's name.", "value": "${kubectl_manifest.daemon_set.name}"},
}
_VARIABLES: Final[Json] = {
    "wait_for_rollout": {
        "description": "Whether an apply ends only when the agent runs on every node that should have it.",
        "type": "bool",
        "default": True,
        "nullable": False,
    },
    "force_conflicts": {
        "description": "Whether fields that someone else has changed are changed back. If not, the apply fails.",
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
_MANY: Final = {"ConfigMap", "Secret"}  # of these kinds there may be more than one
# The provider hands on as YAML what it is given, where these cannot stand: it fails, or swallows U+0085 silently.
_LOST: Final = re.compile(r"[\x7f-\x9f\ufeff\ufffe\uffff]")


def module(given: KubernetesDaemonSetStackInput) -> dict[str, str]:
    """Content by file name. The file of secrets is always there, so that an empty one takes an old one's place."""
    objects = {_resource_name(one): one for one in render(given)}
    if lost := [mistake for one in objects.values() if (mistake := _lost(one))]:
        raise ManifestError(lost)
    secrets = {one["metadata"]["name"]: ascii_yaml(one) for one in objects.values() if _is_secret(one)}
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
        **{_file(name): ascii_yaml(one) for name, one in objects.items() if not _is_secret(one)},
    }


def files_named_in(main: str) -> list[str]:
    """The files of objects that a main file of ours reads; of anyone else's, none."""
    try:
        resources = json.loads(main)["resource"]["kubectl_manifest"].values()
        ours = [one["yaml_body"] for one in resources if one["field_manager"] == FIELD_MANAGER]
    except (ValueError, KeyError, TypeError, AttributeError):
        return []
    return [found[1] for body in ours if (found := _FILE_IN_BODY.fullmatch(body))]


def _resources(objects: Mapping[str, Json]) -> Json:
    found: Json = {}
    for name, one in objects.items():
        needed = [other for other in found if needs(one, objects[other])]
        found[name] = {
            "yaml_body": _body(name, one),
            "server_side_apply": True,
            "field_manager": FIELD_MANAGER,
            "force_conflicts": "${var.force_conflicts}",
            **_by_kind(one),
            **({"depends_on": [f"kubectl_manifest.{other}" for other in needed]} if needed else {}),
        }
    return found


def _body(name: str, one: Json) -> str:
    if _is_secret(one):
        return f'${{var.secrets["{one["metadata"]["name"]}"]}}'
    return f'${{file("${{path.module}}/{_file(name)}")}}'


def _by_kind(one: Json) -> Json:
    match one["kind"]:
        case "Secret":
            return {"sensitive_fields": ["data"]}
        case "Namespace":
            # Others may share it. And a destroy ends when it is gone: in one on its way out, nothing can be made.
            return {"apply_only": "${!var.delete_namespace}", "wait": True}
        case "DaemonSet":
            return {
                "wait_for_rollout": "${var.wait_for_rollout}",
                "wait": True,  # a destroy takes the agent's rights and files away when its last pod has ended
            }
        case _:
            return {}


def _resource_name(one: Json) -> str:
    """Does not change while the object keeps its name, whatever else comes and goes. Objects have no `_` in theirs."""
    kind = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", one["kind"]).lower()
    return f"{kind}_{one['metadata']['name'].replace('.', '_')}" if one["kind"] in _MANY else kind


def _file(name: str) -> str:
    return f"{name}.yaml"


def _is_secret(one: Json) -> bool:
    return bool(one["kind"] == "Secret")


def _lost(one: Json) -> Mistake | None:
    if not (letters := sorted({f"U+{ord(letter):04X}" for letter in _LOST.findall(_json(one))})):
        return None
    why = f"Terraform's provider cannot carry {', '.join(letters)}; leave that out, or deploy without Terraform"
    return Mistake("", why, Place(f"{one['kind']} {one['metadata']['name']}"))


def _json(content: Json) -> str:
    return json.dumps(content, ensure_ascii=False, indent=2) + "\n"
