"""argv -> what is to be made. `make image`, `make build-all` and the Dockerfile call this."""

import argparse
import os
import sys
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from release import debian, executables, facts, oci, sbom, stamp, tree, wheels
from release.errors import ReleaseError
from release.image import Builder, Parts, workbench
from release.oci import Image
from release.stamp import Stamp
from release.store import Store, default_folder
from release.workbench import Workbench

_CHECKOUT = Path(__file__).parent.parent


def main(argv: Sequence[str] | None = None) -> None:
    arguments = _parser().parse_args(argv)
    try:
        build = stamp.of_checkout(_CHECKOUT, os.environ)
        store = Store(arguments.cache)
        arguments.run(arguments, Builder(_CHECKOUT, build, store))
        store.forget_unused()
    except ReleaseError as why:
        sys.exit(f"release: {why}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m release", description="Makes what leaves this repository.")
    parser.add_argument("--cache", type=Path, default=default_folder(), help="where downloads are kept (%(default)s)")
    verbs = parser.add_subparsers(metavar="VERB", required=True)

    image = verbs.add_parser("image", help="the container image, as an OCI archive, and its bill of materials")
    image.add_argument("--arch", action="append", choices=facts.ARCHITECTURES, help="all of them, unless named")
    image.add_argument("--into", type=Path, default=Path("dist"), metavar="FOLDER")
    image.add_argument("--name", default=facts.NAME, help="how it is called where it is loaded (%(default)s)")
    image.set_defaults(run=_image)

    root = verbs.add_parser("root", help="the image's file system, as a folder")
    root.add_argument("--arch", choices=facts.ARCHITECTURES, help="this machine's, unless named")
    root.add_argument("--into", type=Path, required=True, metavar="FOLDER")
    root.set_defaults(run=_root)

    programs = verbs.add_parser("executables", help="programs that need a Python and nothing else")
    programs.add_argument("program", nargs="*", type=_known, metavar="PROGRAM", help="all of them, unless named")
    programs.add_argument("--into", type=Path, default=Path("bin"), metavar="FOLDER")
    programs.set_defaults(run=_executables)
    return parser


def _known(program: str) -> str:
    if program not in facts.PROGRAMS:
        raise argparse.ArgumentTypeError(f"there is no {program}; there are {', '.join(facts.PROGRAMS)}")
    return program


def _image(arguments: argparse.Namespace, builder: Builder) -> None:
    begun = time.monotonic()
    own = builder.own_wheel()
    parts: list[Parts] = []
    images: list[Image] = []
    with _bench(builder) as bench:
        for architecture in arguments.arch or facts.ARCHITECTURES:
            say(f"{architecture}: fetching what is new of Debian {debian.RELEASE} and of the pinned wheels")
            parts.append(builder.gather(architecture))
            say(f"{architecture}: compiling and packing what is new")
            images.append(builder.image(parts[-1], own, bench, os.environ.get("SOURCE_URL", "")))
    arguments.into.mkdir(parents=True, exist_ok=True)
    archive = arguments.into / f"{facts.NAME}-{builder.build.version}.tar"
    contents = {part.architecture: part for part in parts}

    def attest(image: Image, digest: str) -> oci.Statement:
        return sbom.statement([contents[image.architecture]], own, builder.build, digest)

    digest = oci.write(archive, images, name=arguments.name, tag=builder.build.version, attest=attest)
    bill = archive.with_suffix(".cdx.json")
    bill.write_bytes(sbom.bill(parts, own, builder.build, digest))
    _tell(images, builder.build)
    print(f"{archive}  {digest}")
    print(f"{bill}  after {time.monotonic() - begun:.0f} s")


def _bench(builder: Builder) -> AbstractContextManager[Workbench]:
    return workbench(debian.fetch(wheels.machine_architecture(), builder.store), builder.store)


def _tell(images: Sequence[Image], build: Stamp) -> None:
    print(f"{facts.NAME} {build.version}, commit {build.commit or 'unknown'}")
    for image in images:
        compressed = sum(len(layer.blob) for layer in image.layers)
        print(f"{image.architecture:<8} {_megabytes(compressed)} compressed, in {len(image.layers)} layers:")
        for layer in image.layers:
            print(f"  {_megabytes(len(layer.blob))}, unpacked {_megabytes(layer.unpacked)}  {layer.about}")


def _megabytes(size: int) -> str:
    return f"{size / 1e6:6.2f} MB"


def _root(arguments: argparse.Namespace, builder: Builder) -> None:
    with _bench(builder) as bench:
        parts = builder.gather(arguments.arch or wheels.machine_architecture())
        tree.unpack(builder.root(parts, builder.own_wheel(), bench), arguments.into)


def _executables(arguments: argparse.Namespace, builder: Builder) -> None:
    workshop = executables.Workshop(builder.checkout, builder.store, builder.own_wheel(), builder.build.epoch)
    for program in arguments.program or facts.PROGRAMS:
        made = workshop.make(program, arguments.into)
        print(f"{made}  {_megabytes(made.stat().st_size)}")


def say(text: str) -> None:
    print(f"release: {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
