"""The command line of releases, which `make image`, `make build-all` and the Dockerfile call."""

import argparse
import os
import sys
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from release import build_info, debian, executables, image_spec, oci, rootfs, sbom, wheels
from release.build_info import BuildInfo
from release.content_cache import ContentCache, default_folder
from release.errors import ReleaseError
from release.image import Builder, Parts, workbench
from release.oci import Image
from release.target_python import TargetPython

_CHECKOUT = Path(__file__).parent.parent


def main(argv: Sequence[str] | None = None) -> None:
    arguments = _parser().parse_args(argv)
    try:
        build = build_info.of_checkout(_CHECKOUT, os.environ)
        store = ContentCache(arguments.cache)
        arguments.run(arguments, Builder(_CHECKOUT, build, store))
        store.forget_unused()
    except ReleaseError as error:
        sys.exit(f"release: {error}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m release", description="Build the release artifacts.")
    parser.add_argument("--cache", type=Path, default=default_folder(), help="directory for downloads (%(default)s)")
    verbs = parser.add_subparsers(metavar="VERB", required=True)

    image = verbs.add_parser("image", help="build the container image, as an OCI archive, and its bill of materials")
    image.add_argument("--arch", action="append", choices=image_spec.ARCHITECTURES, help="default: all")
    image.add_argument("--into", type=Path, default=Path("dist"), metavar="FOLDER")
    image.add_argument(
        "--name", type=_name, default=image_spec.NAME, help="name of the imported image, without a tag (%(default)s)"
    )
    image.set_defaults(run=_image)

    root = verbs.add_parser("root", help="write the image's file system to a directory")
    root.add_argument("--arch", choices=image_spec.ARCHITECTURES, help="default: this machine's")
    root.add_argument("--into", type=Path, required=True, metavar="FOLDER")
    root.set_defaults(run=_root)

    programs = verbs.add_parser("executables", help="build executables that need only Python")
    programs.add_argument("program", nargs="*", type=_known, metavar="PROGRAM", help="default: all")
    programs.add_argument("--into", type=Path, default=Path("bin"), metavar="FOLDER")
    programs.set_defaults(run=_executables)
    return parser


def _name(text: str) -> str:
    if ":" in text.rpartition("/")[2] or "@" in text:
        raise argparse.ArgumentTypeError(f'"{text}" is invalid; expected a name without a tag: the tag is the version')
    return text


def _known(program: str) -> str:
    if program not in image_spec.PROGRAMS:
        raise argparse.ArgumentTypeError(f"there is no {program}; there are {', '.join(image_spec.PROGRAMS)}")
    return program


def _image(arguments: argparse.Namespace, builder: Builder) -> None:
    begun = time.monotonic()
    own = builder.own_wheel()
    parts: list[Parts] = []
    images: list[Image] = []
    with _bench(builder) as bench:
        for architecture in arguments.arch or image_spec.ARCHITECTURES:
            say(f"{architecture}: fetching what is new of Debian {debian.RELEASE} and of the pinned wheels")
            parts.append(builder.gather(architecture))
            say(f"{architecture}: compiling and packing what is new")
            images.append(builder.image(parts[-1], own, bench, os.environ.get("SOURCE_URL", "")))
    arguments.into.mkdir(parents=True, exist_ok=True)
    archive = arguments.into / f"{image_spec.NAME}-{builder.build.version}.tar"
    contents = {part.architecture: part for part in parts}

    def attest(image: Image, digest: str) -> oci.Statement:
        return sbom.statement([contents[image.architecture]], own, builder.build, digest)

    digest = oci.write(archive, images, name=arguments.name, tag=builder.build.version, attest=attest)
    bill = archive.with_suffix(".cdx.json")
    bill.write_bytes(sbom.bill(parts, own, builder.build, digest))
    _tell(images, builder.build)
    print(f"{archive}  {digest}")
    print(f"{bill}  after {time.monotonic() - begun:.0f} s")


def _bench(builder: Builder) -> AbstractContextManager[TargetPython]:
    return workbench(debian.fetch(wheels.machine_architecture(), builder.store), builder.store)


def _tell(images: Sequence[Image], build: BuildInfo) -> None:
    print(f"{image_spec.NAME} {build.version}, commit {build.commit or 'unknown'}")
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
        rootfs.unpack(builder.root(parts, builder.own_wheel(), bench), arguments.into)


def _executables(arguments: argparse.Namespace, builder: Builder) -> None:
    workshop = executables.Workshop(builder.checkout, builder.store, builder.own_wheel(), builder.build.epoch)
    for program in arguments.program or image_spec.PROGRAMS:
        executable = workshop.make(program, arguments.into)
        print(f"{executable}  {_megabytes(executable.stat().st_size)}")


def say(text: str) -> None:
    print(f"release: {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
