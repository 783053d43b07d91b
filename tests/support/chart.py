"""The Helm chart, rendered by the real Helm that the lab builds."""

import functools
import json
import os
import subprocess
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from lab import build
from lab.errors import LabError

ROOT = Path(__file__).parents[2]
CHART = ROOT / "deploy" / "helm" / "kube-node-ready"
EXAMPLES = sorted((ROOT / "examples").glob("values-*.yaml"))
POLICIES = "admissionregistration.k8s.io/v1/ValidatingAdmissionPolicy"
"""What a cluster has that knows ValidatingAdmissionPolicies."""
A_CLUSTER = "v1/Pod"
"""What every cluster has, and `helm template` does not know of by itself."""

Object = dict[str, Any]
COMPONENT = "app.kubernetes.io/component"


class Rendered(list[Object]):
    """The objects of a release."""

    def of(self, kind: str) -> list[Object]:
        return [one for one in self if one["kind"] == kind]

    def one(self, kind: str, name: str = "", namespace: str = "") -> Object:
        (found,) = (
            one
            for one in self.of(kind)
            if name in ("", one["metadata"]["name"]) and namespace in ("", one["metadata"].get("namespace"))
        )
        return found

    @property
    def kinds(self) -> set[str]:
        return {one["kind"] for one in self}

    @property
    def workload(self) -> Object:
        """Of the operator itself, not its responders."""
        made = self.of("Deployment") + self.of("DaemonSet")
        (found,) = (one for one in made if one["metadata"]["labels"][COMPONENT] != "responder")
        return found

    @property
    def pod(self) -> Object:
        """The pod template of the controller or the DaemonSet."""
        template: Object = self.workload["spec"]["template"]
        return template

    @property
    def container(self) -> Object:
        (found,) = self.pod["spec"]["containers"]
        assert isinstance(found, dict)
        return found

    @property
    def file(self) -> str:
        """The controller's configuration, as it is mounted."""
        text: str = self.one("ConfigMap", self.workload["metadata"]["name"])["data"]["config.yaml"]
        return text

    @property
    def config(self) -> Any:  # noqa: ANN401  YAML
        return yaml.safe_load(self.file)

    @property
    def variables(self) -> dict[str, str]:
        """The DaemonSet's environment, as far as the ConfigMap has it."""
        (source,) = self.container["envFrom"]
        data: dict[str, str] = self.one("ConfigMap", source["configMapRef"]["name"])["data"]
        return data

    def rights(self, account: str) -> dict[str, str]:
        """What the ServiceAccount can do: verbs by place, resource and name."""
        held: dict[str, set[str]] = {}
        for binding in self.of("RoleBinding") + self.of("ClusterRoleBinding"):
            if [subject["name"] for subject in binding["subjects"]] != [account]:
                continue
            place = binding["metadata"].get("namespace", "*")
            role = self.one(binding["roleRef"]["kind"], binding["roleRef"]["name"], place.strip("*"))
            for rule in role["rules"]:
                for what in _things(rule):
                    held.setdefault(f"{place} {what}", set()).update(rule["verbs"])
        return {what: " ".join(sorted(verbs)) for what, verbs in held.items()}


def render(
    values: Mapping[str, Any] | None = None,
    *,
    name: str = "kube-node-ready",
    namespace: str = "kube-system",
    files: Iterable[Path] = (),
    apis: Iterable[str] = (A_CLUSTER,),
    chart: Path = CHART,
) -> Rendered:
    """The objects that Helm makes of these values, by default for a cluster without ValidatingAdmissionPolicies."""
    text = written(values, name=name, namespace=namespace, files=files, apis=apis, chart=chart)
    # libyaml reads what Helm writes in a tenth of the time.
    return Rendered(one for one in yaml.load_all(text, Loader=yaml.CSafeLoader) if one)


def written(values: Mapping[str, Any] | None = None, **how: Any) -> str:  # noqa: ANN401  as for render
    """The same as text."""
    done = _template(values, **how)
    assert done.returncode == 0, done.stderr
    return done.stdout


def refusal(values: Mapping[str, Any], **how: Any) -> str:  # noqa: ANN401  as for render
    """Helm's error for values that it rejects."""
    done = _template(values, **how)
    assert done.returncode, "Helm accepted values that it should reject"
    return done.stderr


def notes(values: Mapping[str, Any] | None = None, *, name: str = "kube-node-ready") -> str:
    """The notes that Helm prints after an installation, by default without the policies, since no cluster is asked."""
    whole = {"admissionPolicy": {"enabled": False}} | dict(values or {})
    done = _with_values(
        whole, lambda file: run("install", name, CHART, "-n=ns", "--dry-run=client", f"--values={file}")
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.partition("\nNOTES:\n")[2]


def policy(part: str, values: Mapping[str, Any] | None = None, **how: Any) -> Object:  # noqa: ANN401  as for render
    """The spec of the admission policy whose name ends so. There is a binding that puts it into effect."""
    made = render(values, apis=[POLICIES], **how)
    (found,) = (one for one in made.of("ValidatingAdmissionPolicy") if one["metadata"]["name"].endswith(part))
    name = found["metadata"]["name"]
    assert made.one("ValidatingAdmissionPolicyBinding", name)["spec"] == {
        "policyName": name,
        "validationActions": ["Deny"],
    }
    spec: Object = found["spec"]
    return spec


def run(*words: object) -> subprocess.CompletedProcess[str]:
    command = [str(helm()), *map(str, words)]
    # No cluster: whatever kubeconfig this machine has is not Helm's to look at.
    environment = {**os.environ, "KUBECONFIG": os.devnull}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


@functools.cache
def helm() -> Path:
    """Helm, if the lab has built it. Otherwise skip, loudly; in CI, where it is a given, fail."""
    try:
        folder = build._assets() or build.cache() / build._identity(build.tools(), build._go(build.tools()))
        program = build.Programs((folder,)).path("helm")
    except LabError as why:
        reason = f"the chart's tests need the lab's Helm, `python -m lab build` makes it: {why}"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    return program


def _template(
    values: Mapping[str, Any] | None = None,
    *,
    name: str = "kube-node-ready",
    namespace: str = "kube-system",
    files: Iterable[Path] = (),
    apis: Iterable[str] = (A_CLUSTER,),
    chart: Path = CHART,
) -> subprocess.CompletedProcess[str]:
    return _cached_template(json.dumps(values or {}), name, namespace, tuple(files), tuple(apis), chart)


@functools.cache
def _cached_template(
    values: str, name: str, namespace: str, files: tuple[Path, ...], apis: tuple[str, ...], chart: Path
) -> subprocess.CompletedProcess[str]:
    more = [*(f"--values={file}" for file in files), *(f"--api-versions={api}" for api in apis)]
    return _with_values(
        json.loads(values),
        lambda file: run("template", name, chart, f"--namespace={namespace}", *more, f"--values={file}"),
    )


def _with_values(values: Mapping[str, Any] | None, then: Any) -> subprocess.CompletedProcess[str]:  # noqa: ANN401
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        json.dump(dict(values or {}), file)  # as YAML, a plain `n` would be no word to Helm
        file.flush()
        done: subprocess.CompletedProcess[str] = then(file.name)
        return done


def _things(rule: Mapping[str, Any]) -> Iterable[str]:
    for resource in rule["resources"]:
        yield from (f"{resource} {name}" for name in rule["resourceNames"]) if "resourceNames" in rule else [resource]
