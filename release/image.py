"""Build the image from Debian packages, pinned wheels and our own wheel.

There are three layers per architecture, the most stable first: Debian, wheels, our own. Only the last one differs
between two releases with the same dependencies, so files of the first two have no time, and these layers are built once
per content.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from release import content_cache, contents, debian, image_spec, oci, wheels
from release.build_info import BuildInfo
from release.content_cache import ContentCache, sha256
from release.debian import Package
from release.image_spec import Project
from release.oci import Image, Layer
from release.rootfs import Entry, File, Tree, of_deb, of_wheel, unpack
from release.target_python import TargetPython
from release.wheels import Target, Wheel

_NO_TIME = 0
_OTHER_PRODUCT = f"{contents.PACKAGES}/kubernetes_daemonset/"


@dataclass(frozen=True)
class Parts:
    """The contents of the image for one architecture."""

    architecture: str
    packages: Sequence[Package]
    wheels: Sequence[Wheel]


@dataclass(frozen=True)
class Builder:
    checkout: Path
    build: BuildInfo
    store: ContentCache

    @property
    def about(self) -> Project:
        return image_spec.project(self.checkout)

    def gather(self, architecture: str) -> Parts:
        packages = debian.fetch(architecture, self.store)
        return Parts(
            architecture, packages, wheels.fetch(self.checkout, Target(architecture, contents.PYTHON), self.store)
        )

    def own_wheel(self) -> Wheel:
        return wheels.own(self.checkout, self.build, self.store)

    def image(self, parts: Parts, own: Wheel, bench: TargetPython, source: str = "") -> Image:
        mine = pack("kube-node-ready", own_tree(own, self.about, bench), self.build.epoch, bench)
        return Image(
            architecture=parts.architecture,
            layers=[*self._lasting_layers(parts, bench), mine],
            entrypoint=[image_spec.ENTRYPOINT],
            user=f"{image_spec.USER_ID}:{image_spec.USER_ID}",
            labels=image_spec.labels(self.about, self.build, source),
            created=self.build.built,
        )

    def root(self, parts: Parts, own: Wheel, bench: TargetPython) -> dict[str, Entry]:
        """Return the whole file system, for packing it with other tools."""
        system, installed = lasting_trees(parts, bench)
        return {**system, **installed, **own_tree(own, self.about, bench)}

    def _lasting_layers(self, parts: Parts, bench: TargetPython) -> list[Layer]:
        """Return the layers of Debian and the wheels. The code that builds them is part of the cache key."""
        ingredients = [[package.digest for package in parts.packages], [wheel.digest for wheel in parts.wheels]]
        question = ["layers", parts.architecture, ingredients, bench.identity, content_cache.code()]
        told = self.store.note(question) or []
        known = [layer for words in told if (layer := self._recalled(*words))]
        if known and len(known) == len(told):
            return known
        system, installed = lasting_trees(parts, bench)
        made = [
            pack(f"Debian {debian.RELEASE}", system, _NO_TIME, bench),
            pack(str(wheels.PINS), installed, _NO_TIME, bench),
        ]
        answer = [(layer.about, self.store.put(layer.blob).name, layer.diff, layer.unpacked) for layer in made]
        self.store.remember(question, answer)
        return made

    def _recalled(self, about: str, digest: str, diff: str, unpacked: int) -> Layer | None:
        path = self.store.find(digest)
        return Layer(about, path.read_bytes(), diff, unpacked) if path else None


@contextmanager
def workbench(packages: Sequence[Package], where: ContentCache) -> Iterator[TargetPython]:
    """Unpack the image's interpreter to run it here; the packages must be of this machine's architecture."""
    architecture = next(package.architecture for package in packages if package.architecture != "all")
    everything = _unpacked(packages)
    kept = contents.debian(everything)
    libraries = contents.libraries(kept, everything, architecture)
    loaders = (path for path, entry in libraries.items() if isinstance(entry, File))
    loader = next(path for path in loaders if path.endswith(contents.LOADERS[architecture]))
    with where.workplace() as folder:
        unpack({**kept, **libraries}, folder)
        yield TargetPython(
            folder,
            loader=loader,
            libraries=contents.library_folders(architecture),
            interpreter=contents.INTERPRETER,
            identity=sha256("".join(package.digest for package in packages).encode()),
        )


def lasting_trees(parts: Parts, bench: TargetPython) -> tuple[Tree, Tree]:
    """Return the files of Debian and the wheels."""
    available = _unpacked(parts.packages)
    system = contents.debian(available)
    installed = contents.installed(
        {path: entry for wheel in parts.wheels for path, entry in of_wheel(wheel.path, contents.PACKAGES).items()}
    )
    libraries = contents.libraries({**system, **installed}, available, parts.architecture)
    bytecode = bench.compile(contents.sources({**system, **installed}))
    papers: dict[str, Entry] = {
        f"var/lib/dpkg/status.d/{package.name}": File(package.control.encode()) for package in parts.packages
    }
    return (
        {**contents.compiled(system, bytecode), **libraries, **papers},
        contents.compiled(installed, bytecode),
    )


def own_tree(wheel: Wheel, about: Project, bench: TargetPython) -> Tree:
    files = contents.installed(of_wheel(wheel.path, contents.PACKAGES))
    modules = {path: entry for path, entry in files.items() if not path.startswith(_OTHER_PRODUCT)}
    return {**contents.compiled(modules, bench.compile(contents.sources(modules))), **image_spec.own_files(about)}


def pack(about: str, tree: Tree, epoch: int, bench: TargetPython) -> Layer:
    plain = oci.layer(tree, epoch)
    return Layer(about, bench.gzip(plain), sha256(plain), len(plain))


def _unpacked(packages: Sequence[Package]) -> Tree:
    return {path: entry for package in packages for path, entry in of_deb(package.path).items()}
