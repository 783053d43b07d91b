"""The image, from Debian packages, pinned wheels and our own: gathered, sifted, compiled, packed.

Three layers an architecture, the most lasting first: Debian's files, the wheels', ours. Only the last one differs
between two releases that depend on the same things, so files of the first two carry no time; and they are made once for
the same content.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from release import debian, facts, oci, rules, store, wheels
from release.debian import Package
from release.facts import Project
from release.oci import Image, Layer
from release.stamp import Stamp
from release.store import Store, sha256
from release.tree import Entry, File, Tree, of_deb, of_wheel, unpack
from release.wheels import Target, Wheel
from release.workbench import Workbench

_NO_TIME = 0
_OTHER_PRODUCT = f"{rules.PACKAGES}/kubernetes_daemonset/"


@dataclass(frozen=True)
class Parts:
    """What goes into the image of one architecture."""

    architecture: str
    packages: Sequence[Package]
    wheels: Sequence[Wheel]


@dataclass(frozen=True)
class Builder:
    checkout: Path
    build: Stamp
    store: Store

    @property
    def about(self) -> Project:
        return facts.project(self.checkout)

    def gather(self, architecture: str) -> Parts:
        packages = debian.fetch(architecture, self.store)
        return Parts(
            architecture, packages, wheels.fetch(self.checkout, Target(architecture, rules.PYTHON), self.store)
        )

    def own_wheel(self) -> Wheel:
        return wheels.own(self.checkout, self.build, self.store)

    def image(self, parts: Parts, own: Wheel, bench: Workbench, source: str = "") -> Image:
        mine = pack("kube-node-ready", own_tree(own, self.about, bench), self.build.epoch, bench)
        return Image(
            architecture=parts.architecture,
            layers=[*self._lasting_layers(parts, bench), mine],
            entrypoint=[facts.ENTRYPOINT],
            user=f"{facts.USER_ID}:{facts.USER_ID}",
            labels=facts.labels(self.about, self.build, source),
            created=self.build.built,
        )

    def root(self, parts: Parts, own: Wheel, bench: Workbench) -> dict[str, Entry]:
        """The whole file system at once, for whoever packs it by other means."""
        system, installed = lasting_trees(parts, bench)
        return {**system, **installed, **own_tree(own, self.about, bench)}

    def _lasting_layers(self, parts: Parts, bench: Workbench) -> list[Layer]:
        """Debian's and the wheels'. The code that makes them is an ingredient, too."""
        ingredients = [[package.digest for package in parts.packages], [wheel.digest for wheel in parts.wheels]]
        question = ["layers", parts.architecture, ingredients, bench.identity, store.code()]
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
def workbench(packages: Sequence[Package], where: Store) -> Iterator[Workbench]:
    """The image's interpreter, ready to run on this machine, of whose architecture the packages must be."""
    architecture = next(package.architecture for package in packages if package.architecture != "all")
    everything = _unpacked(packages)
    kept = rules.debian(everything)
    libraries = rules.libraries(kept, everything, architecture)
    loaders = (path for path, entry in libraries.items() if isinstance(entry, File))
    loader = next(path for path in loaders if path.endswith(rules.LOADERS[architecture]))
    with where.workplace() as folder:
        unpack({**kept, **libraries}, folder)
        yield Workbench(
            folder,
            loader=loader,
            libraries=rules.library_folders(architecture),
            interpreter=rules.INTERPRETER,
            identity=sha256("".join(package.digest for package in packages).encode()),
        )


def lasting_trees(parts: Parts, bench: Workbench) -> tuple[Tree, Tree]:
    """Debian's files and the wheels'."""
    available = _unpacked(parts.packages)
    system = rules.debian(available)
    installed = rules.installed(
        {path: entry for wheel in parts.wheels for path, entry in of_wheel(wheel.path, rules.PACKAGES).items()}
    )
    libraries = rules.libraries({**system, **installed}, available, parts.architecture)
    bytecode = bench.compile(rules.sources({**system, **installed}))
    papers: dict[str, Entry] = {
        f"var/lib/dpkg/status.d/{package.name}": File(package.control.encode()) for package in parts.packages
    }
    return (
        {**rules.compiled(system, bytecode), **libraries, **papers},
        rules.compiled(installed, bytecode),
    )


def own_tree(wheel: Wheel, about: Project, bench: Workbench) -> Tree:
    files = rules.installed(of_wheel(wheel.path, rules.PACKAGES))
    modules = {path: entry for path, entry in files.items() if not path.startswith(_OTHER_PRODUCT)}
    return {**rules.compiled(modules, bench.compile(rules.sources(modules))), **facts.own_files(about)}


def pack(about: str, tree: Tree, epoch: int, bench: Workbench) -> Layer:
    plain = oci.layer(tree, epoch)
    return Layer(about, bench.gzip(plain), sha256(plain), len(plain))


def _unpacked(packages: Sequence[Package]) -> Tree:
    return {path: entry for package in packages for path, entry in of_deb(package.path).items()}
