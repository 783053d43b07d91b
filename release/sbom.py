"""The bill of materials in CycloneDX 1.5: all Debian packages and Python distributions of the image, and our own.

One file covers all architectures of an image. Packages that are the same for each of them (a wheel without compiled
parts, a package for all architectures) are listed once. The same image results in the same file.
"""

import json
import uuid
from collections.abc import Iterable, Sequence
from typing import Any
from urllib.parse import quote

from release import debian, image_spec
from release.build_info import BuildInfo
from release.debian import Package
from release.image import Parts
from release.oci import Statement
from release.wheels import Wheel

_PREDICATE = "https://cyclonedx.org/bom"
_SPACE = uuid.UUID("5d0c2a3e-8d0a-5f0e-9a51-6f2f0c3c1f4b")


def bill(parts: Sequence[Parts], own: Wheel, build: BuildInfo, digest: str) -> bytes:
    """Return the bill of materials. `digest` is that of the image."""
    packages = {package.digest: package for part in parts for package in part.packages}
    wheels = {wheel.digest: wheel for part in parts for wheel in part.wheels}
    components = [_of_package(package) for package in packages.values()]
    components += [_of_wheel(wheel) for wheel in wheels.values()]
    components.sort(key=lambda component: str(component["bom-ref"]))
    ours = _of_wheel(own)
    del ours["hashes"]  # it is published only as part of this image, so the wheel cannot be looked up
    image = {
        "type": "container",
        "bom-ref": f"pkg:oci/{image_spec.NAME}@{quote(digest, safe='')}",
        "name": image_spec.NAME,
        "version": build.version,
        "purl": f"pkg:oci/{image_spec.NAME}@{quote(digest, safe='')}",
    }
    document = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "serialNumber": f"urn:uuid:{uuid.uuid5(_SPACE, digest)}",
        "version": 1,
        "metadata": {**({"timestamp": build.built} if build.built else {}), "component": image},
        "components": [ours, *components],
        "dependencies": [
            {"ref": image["bom-ref"], "dependsOn": _refs([ours, *components])},
            {"ref": ours["bom-ref"], "dependsOn": _refs(map(_of_wheel, wheels.values()))},
        ],
    }
    return json.dumps(document, indent=1).encode() + b"\n"


def statement(parts: Sequence[Parts], own: Wheel, build: BuildInfo, digest: str) -> Statement:
    """Return the bill of materials of one image, as an attestation in it."""
    algorithm, _, value = digest.partition(":")
    stated = {
        "_type": "https://in-toto.io/Statement/v0.1",
        "predicateType": _PREDICATE,
        "subject": [{"name": image_spec.NAME, "digest": {algorithm: value}}],
        "predicate": json.loads(bill(parts, own, build, digest)),
    }
    return Statement(_PREDICATE, json.dumps(stated, separators=(",", ":"), sort_keys=True).encode())


def _of_package(package: Package) -> dict[str, Any]:
    version = quote(package.version, safe="~.-")
    purl = f"pkg:deb/debian/{quote(package.name)}@{version}?arch={package.architecture}&distro=debian-{debian.NUMBER}"
    return _component(purl, package.name, package.version, package.digest)


def _of_wheel(wheel: Wheel) -> dict[str, Any]:
    purl = f"pkg:pypi/{wheel.name}@{quote(wheel.version)}?file_name={quote(wheel.file)}"
    component = _component(purl, wheel.name, wheel.version, wheel.digest)
    return component | ({"licenses": [{"expression": wheel.license}]} if wheel.license else {})


def _component(purl: str, name: str, version: str, digest: str) -> dict[str, Any]:
    return {
        "type": "library",
        "bom-ref": purl,
        "name": name,
        "version": version,
        "hashes": [{"alg": "SHA-256", "content": digest}],
        "purl": purl,
    }


def _refs(components: Iterable[dict[str, Any]]) -> list[str]:
    return sorted(component["bom-ref"] for component in components)
