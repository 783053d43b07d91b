"""What the image is made of, and how: everything that can be tested offline."""

import io
import json
import os
import re
import struct
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from release import build_info, contents, debian, elf, image_spec, oci, sbom, wheels
from release.__main__ import main as release_main
from release.build_info import BuildInfo
from release.content_cache import ContentCache, sha256
from release.debian import Package
from release.errors import ReleaseError
from release.image import Parts
from release.oci import Image, Layer
from release.rootfs import File, Link, Tree, folders, resolve, unpack
from release.wheels import Target, Wheel

CHECKOUT = Path(__file__).parent.parent.parent.parent
BUILD = BuildInfo("1.2.3", "1a2b3c4", "1a2b3c4d5e6f", 1_700_000_000)
TREE: Tree = {
    "usr/lib/thing.so.1": Link("thing.so.1.2"),
    "usr/lib/thing.so.1.2": File(b"library"),
    "program": File(b"#!/usr/bin/python3.11\n", executable=True),
}


class TestArchives:
    def test_a_layer_depends_on_its_content_alone(self) -> None:
        backwards = dict(reversed([*TREE.items()]))
        assert oci.layer(TREE, 7) == oci.layer(backwards, 7)

    def test_a_layer_is_owned_and_writable_by_root_only(self) -> None:
        members = entries(oci.layer(TREE, 7))
        assert [member.name for member in members] == ["usr", "usr/lib", "program", *sorted(TREE)[1:]]
        assert {(member.uid, member.gid, member.uname, member.mtime) for member in members} == {(0, 0, "", 7)}
        assert not [member.name for member in members if member.mode & 0o6022 and not member.issym()]
        assert [member.name for member in members if member.isfile() and member.mode & 0o111] == ["program"]

    @pytest.mark.parametrize(
        ("name", "full"),
        [
            ("thing", "docker.io/library/thing"),
            ("team/thing", "docker.io/team/thing"),
            ("registry.example/thing", "registry.example/thing"),
            ("registry:5000/team/thing", "registry:5000/team/thing"),
            ("localhost/thing", "localhost/thing"),
        ],
    )
    def test_a_name_without_a_registry_is_completed_as_runtimes_do(self, name: str, full: str) -> None:
        assert oci.full_name(name) == full

    @pytest.mark.parametrize("name", ["thing:latest", "registry:5000/thing:1", "thing@sha256:12"])
    def test_a_name_with_a_tag_is_rejected(self, name: str, capsys: pytest.CaptureFixture[str]) -> None:
        with pytest.raises(SystemExit) as ended:
            release_main(["image", f"--name={name}"])
        assert ended.value.code == 2
        assert f'argument --name: "{name}" is invalid; expected a name without a tag' in capsys.readouterr().err

    def test_an_archive_holds_every_blob_that_it_names(self, tmp_path: Path) -> None:
        digest = oci.write(tmp_path / "image.tar", [an_image("amd64"), an_image("arm64")], name="thing", tag="1")
        blobs = read_archive(tmp_path / "image.tar")
        top = json.loads(blobs["index.json"])
        (described,) = top["manifests"]
        assert described["digest"] == digest
        assert described["annotations"]["io.containerd.image.name"] == "docker.io/library/thing:1"
        index = json.loads(blob(blobs, digest))
        assert [found["platform"]["architecture"] for found in index["manifests"]] == ["amd64", "arm64"]
        for found in index["manifests"]:
            manifest = json.loads(blob(blobs, found["digest"]))
            config = json.loads(blob(blobs, manifest["config"]["digest"]))
            assert config["rootfs"]["diff_ids"] == ["sha256:plain"]
            assert config["config"]["Entrypoint"] == [image_spec.ENTRYPOINT]
            assert config["config"]["User"] == "1000:1000"
            assert [sha256(blob(blobs, part["digest"])) for part in manifest["layers"]] == [sha256(b"packed")]

    def test_the_same_image_is_the_same_archive(self, tmp_path: Path) -> None:
        for name in ("one.tar", "two.tar"):
            oci.write(tmp_path / name, [an_image("amd64")], name="thing", tag="1")
        assert (tmp_path / "one.tar").read_bytes() == (tmp_path / "two.tar").read_bytes()

    def test_a_bill_of_materials_is_attached_to_each_image(self, tmp_path: Path) -> None:
        def attest(image: Image, digest: str) -> oci.Statement:
            return sbom.statement([some_parts(image.architecture)], a_wheel("kube-node-ready"), BUILD, digest)

        images = [an_image("amd64"), an_image("arm64")]
        digest = oci.write(tmp_path / "image.tar", images, name="thing", tag="1", attest=attest)
        blobs = read_archive(tmp_path / "image.tar")
        *found, amd64, arm64 = json.loads(blob(blobs, digest))["manifests"]
        assert [one["platform"]["architecture"] for one in found] == ["amd64", "arm64"]
        for image, attached in zip(found, (amd64, arm64), strict=True):
            assert attached["platform"] == {"architecture": "unknown", "os": "unknown"}
            assert attached["annotations"]["vnd.docker.reference.type"] == "attestation-manifest"
            assert attached["annotations"]["vnd.docker.reference.digest"] == image["digest"]
            manifest = json.loads(blob(blobs, attached["digest"]))
            config = json.loads(blob(blobs, manifest["config"]["digest"]))
            (layer,) = manifest["layers"]
            assert config["rootfs"]["diff_ids"] == [layer["digest"]]
            assert layer["annotations"] == {"in-toto.io/predicate-type": "https://cyclonedx.org/bom"}
            stated = json.loads(blob(blobs, layer["digest"]))
            assert f"sha256:{stated['subject'][0]['digest']['sha256']}" == image["digest"]
            architecture = image["platform"]["architecture"]
            assert f"pkg:deb/debian/libc6@2.36-9%2Bdeb12u1?arch={architecture}&distro=debian-12" in [
                one["purl"] for one in stated["predicate"]["components"]
            ]


class TestTrees:
    def test_a_link_is_followed_to_its_file(self) -> None:
        assert resolve(TREE, "usr/lib/thing.so.1") == ("usr/lib/thing.so.1", "usr/lib/thing.so.1.2")
        assert resolve({"a": Link("/b"), "b": File(b"")}, "a") == ("a", "b")

    @pytest.mark.parametrize("links", [{}, {"a": Link("b")}, {"a": Link("b"), "b": Link("a")}])
    def test_a_dangling_link_is_not_a_file(self, links: dict[str, Link]) -> None:
        assert resolve(links, "a") == ()

    def test_folders_come_parents_first(self) -> None:
        assert folders({"a/b/c": File(b""), "a/d": File(b"")}) == ["a", "a/b"]

    def test_a_tree_can_be_put_on_a_disk(self, tmp_path: Path) -> None:
        unpack(TREE, tmp_path)
        assert (tmp_path / "usr/lib/thing.so.1").read_bytes() == b"library"
        assert (tmp_path / "program").stat().st_mode & 0o777 == 0o755
        assert (tmp_path / "usr/lib/thing.so.1.2").stat().st_mode & 0o777 == 0o644


class TestRules:
    @pytest.mark.parametrize(
        "path",
        [
            "os.py",
            "asyncio/events.py",
            "encodings/idna.py",
            "lib-dynload/_ssl.cpython-311-x86_64-linux-gnu.so",
            "wsgiref/simple_server.py",
        ],
    )
    def test_needed_modules_of_the_standard_library_are_included(self, path: str) -> None:
        assert contents.in_library(f"{contents.LIBRARY}/{path}")

    @pytest.mark.parametrize(
        "path",
        [
            "unittest/mock.py",
            "pdb.py",
            "test/support/__init__.py",
            "lib-dynload/_ctypes.cpython-311-x86_64-linux-gnu.so",
            "lib-dynload/_testcapi.cpython-311-x86_64-linux-gnu.so",
            "venv/scripts/common/activate",
            "email/architecture.rst",
            "EXTERNALLY-MANAGED",
        ],
    )
    def test_unneeded_modules_of_the_standard_library_are_excluded(self, path: str) -> None:
        assert not contents.in_library(f"{contents.LIBRARY}/{path}")

    def test_only_code_and_metadata_of_a_package_are_included(self) -> None:
        package = {
            "bin/sh": File(b"", executable=True),
            "usr/bin/python3.11": File(b"", executable=True),
            "usr/lib/python3.11/os.py": File(b""),
            "usr/share/doc/thing/changelog.gz": File(b""),
            "usr/share/doc/thing/copyright": File(b""),
            "usr/share/locale/de/thing.mo": File(b""),
            "usr/lib/x86_64-linux-gnu/gconv/BIG5.so": File(b""),
        }
        kept = set(contents.debian(package)) - {contents.BUNDLE, "usr/lib/ssl/cert.pem"}
        assert kept == {"usr/bin/python3.11", "usr/lib/python3.11/os.py", "usr/share/doc/thing/copyright"}

    def test_licenses_of_a_wheel_are_included_and_sources_are_not(self) -> None:
        names = ["thing/__init__.py", "thing/core.so", "thing/core.c", "thing/core.pyi", "thing/py.typed"]
        names += ["thing-1.dist-info/METADATA", "thing-1.dist-info/RECORD", "thing-1.dist-info/licenses/LICENSE"]
        kept = contents.installed({f"{contents.PACKAGES}/{name}": File(b"") for name in names})
        assert {path.removeprefix(f"{contents.PACKAGES}/") for path in kept} == {
            "thing/__init__.py",
            "thing/core.so",
            "thing-1.dist-info/METADATA",
            "thing-1.dist-info/licenses/LICENSE",
        }

    def test_authorities_become_the_one_file_that_openssl_reads(self) -> None:
        folder = "usr/share/ca-certificates/mozilla"
        made = contents.debian({f"{folder}/b.crt": File(b"B\n"), f"{folder}/a.crt": File(b"A")})
        assert made[contents.BUNDLE] == File(b"A\nB\n")
        assert resolve(made, "usr/lib/ssl/cert.pem")[-1] == contents.BUNDLE

    def test_modules_are_kept_as_bytecode_alone(self) -> None:
        files = {"lib/a.py": File(b"source"), "lib/b.so": File(b"compiled")}
        assert contents.sources(files) == {"/lib/a.py": b"source"}
        compiled = contents.compiled(files, {"/lib/a.py": b"bytecode"})
        assert compiled == {"lib/a.pyc": File(b"bytecode"), "lib/b.so": File(b"compiled")}

    def test_every_import_of_the_operator_is_included(self) -> None:
        """Everything that is loaded when every module of ours is, optional accelerators aside. As in the image, without
        the packages of commands for people: only modules of those commands need them.
        """
        optional = {"_bz2", "_lzma", "_uuid", "bz2", "lzma"}
        script = (
            "import importlib, pkgutil, sys, kube_node_ready\n"
            "sys.modules.update(click=None, rich=None)\n"
            "for found in pkgutil.walk_packages(kube_node_ready.__path__, 'kube_node_ready.'):\n"
            "    try:\n"
            "        importlib.import_module(found.name)\n"
            "    except ModuleNotFoundError as error:\n"
            "        assert error.name.partition('.')[0] in ('click', 'rich'), error\n"
            "        assert found.name.startswith('kube_node_ready.cli.'), found.name\n"
            "print(*sorted({name.partition('.')[0] for name in sys.modules}))\n"
        )
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
        assert set(done.stdout.split()) & contents.MODULES_LEFT_OUT <= optional


class TestLibraries:
    def test_the_interpreter_s_libraries_are_read_as_the_loader_reads_them(self) -> None:
        program = Path(sys.executable).resolve()
        reported = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
        assert {Path(name).name for name in elf.needed(program.read_bytes())} <= set(
            re.findall(r"[\w.+-]+\.so[\d.]*", reported)
        )

    def test_debug_sections_are_stripped(self) -> None:
        lean = an_elf("libone.so.1")
        with_symbols = bytearray(lean + b"symbols")
        struct.pack_into("<QI", with_symbols, 40, len(lean), 0)
        struct.pack_into("<HH", with_symbols, 60, 5, 4)
        assert elf.stripped(bytes(with_symbols)) == lean
        assert elf.needed(lean) == ["libone.so.1"]

    def test_linked_libraries_are_included(self) -> None:
        folder = "lib/aarch64-linux-gnu"
        available: Tree = {
            f"{folder}/libgcc_s.so.1": File(an_elf()),
            f"{folder}/libone.so.1": Link("libone.so.1.0"),
            f"{folder}/libone.so.1.0": File(an_elf("libtwo.so.2")),
            f"usr/{folder}/libtwo.so.2": File(an_elf()),
            f"{folder}/libthree.so.3": File(an_elf()),
        }
        found = contents.libraries({"program": File(an_elf("libone.so.1"))}, available, "arm64")
        assert set(found) == set(available) - {f"{folder}/libthree.so.3"}

    def test_a_library_that_no_package_brings_is_named(self) -> None:
        available = {"lib/x86_64-linux-gnu/libgcc_s.so.1": File(an_elf())}
        with pytest.raises(ReleaseError, match=r"libmissing\.so\.1"):
            contents.libraries({"program": File(an_elf("libmissing.so.1"))}, available, "amd64")


class TestPrograms:
    @pytest.mark.parametrize("program", image_spec.PROGRAMS)
    def test_a_launcher_starts_the_interpreter_alone_and_the_right_function(self, program: str) -> None:
        about = image_spec.project(CHECKOUT)
        first, *rest = image_spec.launcher(about.scripts[program]).decode().splitlines()
        assert first == "#!/usr/bin/python3.11 -IS"
        module, _, function = about.scripts[program].partition(":")
        assert rest[-2:] == [f"from {module} import {function}", f"{function}()"]

    def test_the_user_has_a_name_and_no_shell(self) -> None:
        files = image_spec.own_files(image_spec.project(CHECKOUT))
        passwd = files["etc/passwd"]
        assert isinstance(passwd, File)
        assert "nodecheck:x:1000:1000:" in passwd.content.decode()
        assert {line.rpartition(":")[2] for line in passwd.content.decode().split()} == {"/nonexistent"}

    def test_every_program_has_its_place(self) -> None:
        files = image_spec.own_files(image_spec.project(CHECKOUT))
        assert image_spec.ENTRYPOINT.lstrip("/") in image_spec.PROGRAMS
        assert all(files[name] == File(files[name].content, executable=True) for name in image_spec.PROGRAMS)  # type: ignore[union-attr]


class TestDockerfile:
    """It cannot import what the image is, so it is compared with it."""

    def test_its_stages_build_the_same_image_as_make_image(self) -> None:
        last = stages()[-1]
        assert last["FROM"] == ["scratch"]
        assert last["USER"] == [f"{image_spec.USER_ID}:{image_spec.USER_ID}"]
        assert json.loads(last["ENTRYPOINT"][0]) == [image_spec.ENTRYPOINT]
        assert last["COPY"] == ["--from=build /image /"]
        assert last["WORKDIR"] == ["/"]

    def test_its_labels_are_ours(self) -> None:
        variables = {"VERSION": "1", "COMMIT_HASH": "2", "BUILD_DATE": "2023-11-14T22:13:20Z", "SOURCE_URL": "3"}
        output = dict(re.findall(r'(\S+)="([^"]*)"', stages()[-1]["LABEL"][0]))
        filled = {name: variables.get(value.lstrip("$"), value) for name, value in output.items()}
        assert filled == image_spec.labels(image_spec.project(CHECKOUT), replace(BUILD, version="1", revision="2"), "3")

    def test_it_takes_the_build_arguments(self) -> None:
        first, last = stages()
        assert last["ARG"] == list(image_spec.BUILD_ARGUMENTS)
        assert first["ARG"] == [name for name in image_spec.BUILD_ARGUMENTS if name != "SOURCE_URL"] + [
            "TARGETARCH",
            debian.SNAPSHOT,
            debian.ARCHIVE,
        ]
        script = (CHECKOUT / "scripts/docker-build").read_text()
        assert re.findall(r'--build-arg "(\w+)=', script) == [
            *image_spec.BUILD_ARGUMENTS,
            *defaults(),
            debian.SNAPSHOT,
            debian.ARCHIVE,
        ]

    def test_it_builds_by_the_same_code_on_the_same_debian(self) -> None:
        first = stages()[0]
        assert first["FROM"] == ["--platform=$BUILDPLATFORM $DEBIAN_IMAGE AS build"]
        assert defaults() == {"DEBIAN_IMAGE": f"debian:{debian.RELEASE}-slim"}
        assert first["RUN"][-1].startswith("/venv/bin/python -m release root ")

    def test_it_copies_every_file_of_a_build(self) -> None:
        sources = [source for line in stages()[0]["COPY"] for source in line.split()[:-1]]
        assert all((CHECKOUT / source).exists() for source in sources)
        assert {source.partition("/")[0] for source in sources} == set(build_info.INGREDIENTS)
        ignored = (CHECKOUT / ".dockerignore").read_text().split()
        assert {line.lstrip("!") for line in ignored if line.startswith("!")} == set(build_info.INGREDIENTS)


class TestPins:
    TEXT = (
        "# made by a program\n"
        'thing==1.0 ; python_full_version < "3.13" \\\n'
        "    --hash=sha256:aa \\\n"
        "    --hash=sha256:bb\n"
        "    # via other\n"
        "other==2.0 ; sys_platform == 'win32' \\\n"
        "    --hash=sha256:cc\n"
        "third[extra]==3.0 \\\n"
        "    --hash=sha256:dd\n"
    )

    def test_markers_are_judged_for_the_target(self) -> None:
        new, old = Target("arm64", "3.14"), Target("amd64", "3.11")
        assert [pin.line() for pin in wheels.needed(self.TEXT, new)] == ["third==3.0 --hash=sha256:dd"]
        assert [pin.requirement.name for pin in wheels.needed(self.TEXT, old)] == ["thing", "third"]

    def test_a_pin_keeps_all_its_hashes(self) -> None:
        first = next(wheels.pins(self.TEXT))
        assert first.line() == "thing==1.0 --hash=sha256:aa --hash=sha256:bb"

    def test_shipped_packages_are_those_of_the_tests(self) -> None:
        """Also for those that build by the Dockerfile."""
        pinned = {
            name: versions((CHECKOUT / f"requirements/{name}.txt").read_text())
            for name in ("dev", "runtime", "cli", "build")
        }
        assert pinned["runtime"].items() <= pinned["dev"].items()
        assert pinned["cli"].items() <= pinned["dev"].items()
        assert pinned["build"].items() <= pinned["dev"].items()

    def test_every_direct_dependency_is_pinned(self) -> None:
        pinned = set(versions((CHECKOUT / wheels.PINS).read_text()))
        assert pinned == {"httptools", "msgspec", "prometheus-client", "pyyaml", "uvloop"}, "and nothing that they need"


class TestBill:
    def test_it_lists_packages_distributions_and_us(self) -> None:
        bill = json.loads(
            sbom.bill([some_parts("amd64"), some_parts("arm64")], a_wheel("kube-node-ready"), BUILD, "sha256:ab")
        )
        assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.5")
        assert bill["metadata"]["timestamp"] == "2023-11-14T22:13:20Z"
        assert bill["metadata"]["component"]["purl"] == "pkg:oci/kube-node-ready@sha256%3Aab"
        assert [component["purl"] for component in bill["components"]] == [
            "pkg:pypi/kube-node-ready@1.0?file_name=kube-node-ready-1.0-py3-none-any.whl",
            "pkg:deb/debian/libc6@2.36-9%2Bdeb12u1?arch=amd64&distro=debian-12",
            "pkg:deb/debian/libc6@2.36-9%2Bdeb12u1?arch=arm64&distro=debian-12",
            "pkg:pypi/pure@1.0?file_name=pure-1.0-py3-none-any.whl",
        ]
        assert all(component["hashes"][0]["alg"] == "SHA-256" for component in bill["components"][1:])
        references = {component["bom-ref"] for component in bill["components"]}
        assert len(references) == len(bill["components"])
        assert all(set(edge["dependsOn"]) <= references for edge in bill["dependencies"])

    def test_it_is_the_same_for_the_same_image_and_another_for_another(self) -> None:
        def made(digest: str) -> bytes:
            return sbom.bill([some_parts("amd64")], a_wheel("kube-node-ready"), BUILD, digest)

        assert made("sha256:ab") == made("sha256:ab")
        assert json.loads(made("sha256:ab"))["serialNumber"] != json.loads(made("sha256:cd"))["serialNumber"]


class TestStore:
    def test_a_damaged_file_counts_as_missing(self, tmp_path: Path) -> None:
        store = ContentCache(tmp_path)
        path = store.put(b"content")
        assert store.find(sha256(b"content")) == path
        path.write_bytes(b"damaged")
        assert store.find(sha256(b"content")) is None

    def test_unused_entries_expire(self, tmp_path: Path) -> None:
        store = ContentCache(tmp_path)
        used, unused = store.put(b"used"), store.put(b"unused")
        store.apt.mkdir()
        for path in (used, unused, store.apt):
            os.utime(path, (0, 0))
        assert store.find(used.name)
        store.forget_unused()
        assert sorted(tmp_path.iterdir()) == sorted([used, store.apt])

    def test_a_cached_value_belongs_to_its_key(self, tmp_path: Path) -> None:
        store = ContentCache(tmp_path)
        store.remember(["what", 1], {"a": "b"})
        assert store.note(["what", 1]) == {"a": "b"}
        assert store.note(["what", 2]) is None


def entries(layer: bytes) -> list[tarfile.TarInfo]:
    with tarfile.open(fileobj=io.BytesIO(layer)) as tar:
        return tar.getmembers()


def read_archive(path: Path) -> dict[str, bytes]:
    def content(tar: tarfile.TarFile) -> Iterator[tuple[str, bytes]]:
        for member in tar:
            file = tar.extractfile(member)
            assert file
            yield member.name, file.read()

    with tarfile.open(path) as tar:
        return dict(content(tar))


def blob(blobs: dict[str, bytes], digest: str) -> bytes:
    found = blobs[f"blobs/{digest.replace(':', '/')}"]
    assert f"sha256:{sha256(found)}" == digest
    return found


def an_image(architecture: str) -> Image:
    layers = [Layer("files", b"packed", "plain", 10)]
    labels = image_spec.labels(image_spec.project(CHECKOUT), BUILD)
    return Image(architecture, layers, [image_spec.ENTRYPOINT], "1000:1000", labels, BUILD.built)


def an_elf(*needed: str) -> bytes:
    """As little of a shared library as can say what it needs."""
    strings = b"\0" + b"".join(name.encode() + b"\0" for name in needed)
    at = 64 + 2 * 56
    entries = [(1, strings.index(name.encode())) for name in needed] + [(5, at), (0, 0)]
    dynamic = b"".join(struct.pack("<QQ", *entry) for entry in entries)
    size = at + len(strings) + len(dynamic)
    header = b"\x7fELF\x02\x01" + bytes(26) + struct.pack("<Q", 64) + bytes(14) + struct.pack("<HH", 56, 2) + bytes(6)
    load = struct.pack("<IIQQQQQQ", 1, 0, 0, 0, 0, size, size, 1)
    table = struct.pack("<IIQQQQQQ", 2, 0, at + len(strings), 0, 0, len(dynamic), len(dynamic), 1)
    return header + load + table + strings + dynamic


def defaults() -> dict[str, str]:
    """The Dockerfile's arguments before its first stage."""
    before = (CHECKOUT / "Dockerfile").read_text().partition("FROM ")[0]
    return dict(re.findall(r"(?m)^ARG (\w+)=(\S+)$", before))


def stages() -> list[dict[str, list[str]]]:
    """The Dockerfile's stages: what follows each instruction's word."""
    text = re.sub(r"\\\n\s*", "", re.sub(r"(?m)^#.*\n", "", (CHECKOUT / "Dockerfile").read_text()))
    text = text[text.index("FROM ") :]
    found: list[dict[str, list[str]]] = []
    for line in filter(None, text.splitlines()):
        word, _, rest = line.partition(" ")
        if word == "FROM":
            found.append({})
        found[-1].setdefault(word, []).append(rest)
    return found


def versions(pins: str) -> dict[str, str]:
    return {pin.requirement.name: str(pin.requirement.specifier) for pin in wheels.pins(pins)}


def a_wheel(name: str) -> Wheel:
    file = f"{name}-1.0-py3-none-any.whl"
    return Wheel(name, "1.0", file, sha256(file.encode()), Path("/nonexistent"))


def some_parts(architecture: str) -> Parts:
    digest = sha256(architecture.encode())
    package = Package("libc6", "2.36-9+deb12u1", architecture, digest, Path("/nonexistent"), "")
    return Parts(architecture, [package], [a_wheel("pure")])
