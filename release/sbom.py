"""The bill of materials, as CycloneDX 1.5: every Debian package and every Python distribution of the image, and ours.

One file covers all architectures of an image. What is the same in each of them (a wheel without compiled parts, a
package for all architectures) stands there once. The same image gives the same bill.
"""

import json
import uuid
from collections.abc import Iterable, Sequence
from typing import Any
from urllib.parse import quote

from release import debian, facts
from release.debian import Package
from release.image import Parts
from release.oci import Statement
from release.stamp import Stamp
from release.wheels import Wheel

_PREDICATE = "https://cyclonedx.org/bom"
_SPACE = uuid.UUID("5d0c2a3e-8d0a-5f0e-9a51-6f2f0c3c1f4b")


def bill(parts: Sequence[Parts], own: Wheel, build: Stamp, digest: str) -> bytes:
    """`digest` is the image's own."""
    packages = {package.digest: package for part in parts for package in part.packages}
    wheels = {wheel.digest: wheel for part in parts for wheel in part.wheels}
    components = [_of_package(package) for package in packages.values()]
    components += [_of_wheel(wheel) for wheel in wheels.values()]
    components.sort(key=lambda component: str(component["bom-ref"]))
    ours = _of_wheel(own)
    del ours["hashes"]  # it is published as a part of this image alone, and nobody could look the wheel up
    image = {
        "type": "container",
        "bom-ref": f"pkg:oci/{facts.NAME}@{quote(digest, safe='')}",
        "name": facts.NAME,
        "version": build.version,
        "purl": f"pkg:oci/{facts.NAME}@{quote(digest, safe='')}",
    }
    said = {
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
    return json.dumps(said, indent=1).encode() + b"\n"


def statement(parts: Sequence[Parts], own: Wheel, build: Stamp, digest: str) -> Statement:
    """The bill of one image, for the image to carry it along."""
    algorithm, _, value = digest.partition(":")
    stated = {
        "_type": "https://in-toto.io/Statement/v0.1",
        "predicateType": _PREDICATE,
        "subject": [{"name": facts.NAME, "digest": {algorithm: value}}],
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
