"""The verbs that need no cluster, besides `validate`: render, explain, init."""

import argparse
import difflib
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Final

from kubernetes_daemonset import exits, folders, names, show, verbs
from kubernetes_daemonset.backends import pulumi_project, terraform
from kubernetes_daemonset.dump import manifest_yaml, plain, to_yaml
from kubernetes_daemonset.explain import NoSuchField, explain
from kubernetes_daemonset.folders import Folder
from kubernetes_daemonset.manifest import Loaded
from kubernetes_daemonset.mistakes import ManifestError
from kubernetes_daemonset.resources import render
from kubernetes_daemonset.terminal import on_one_line

_STACK_INPUT: Final = "stack-input.yaml"
# What is written into a folder, and the files by which a folder is known to be for it.
_WRITTEN: Final = {"terraform": ("*.tf", "*.tf.json"), "pulumi": ("Pulumi.yaml", "Pulumi.yml")}
# Files that hold secrets, if there are any.
_FOR_ITS_OWNER: Final = {_STACK_INPUT, terraform.SECRETS_FILE}
_GITIGNORE: Final = ".gitignore"
# Files with secrets. Terraform keeps every attribute in its state.
_IGNORED: Final = {"terraform": (terraform.SECRETS_FILE, "*.tfstate", "*.tfstate.*"), "pulumi": (_STACK_INPUT,)}


def run(verb: str, arguments: argparse.Namespace) -> int:
    try:
        return {"render": _render, "explain": _explain, "init": _init}[verb](arguments)
    except ManifestError as why:
        return verbs.refuse(why)
    except verbs.Ended as why:
        return verbs.end(why)


def _render(arguments: argparse.Namespace) -> int:
    _refuse_flags_that_do_not_fit(arguments)
    loaded = verbs.valid(arguments)
    if arguments.to in _WRITTEN:
        return _write(arguments, loaded)
    if arguments.to == "manifest":
        print("---\n".join(manifest_yaml(one.manifest) for one in loaded), end="")
        return exits.OK
    objects = [body for one in loaded for body in render(one.input)]
    if arguments.output == "json":
        print(show.as_json({"apiVersion": "v1", "kind": "List", "items": objects}))
    elif arguments.output == "table":
        rows = [(body["kind"], body["metadata"].get("namespace", ""), body["metadata"]["name"]) for body in objects]
        print(show.table(("KIND", "NAMESPACE", "NAME"), rows))
    else:
        print(to_yaml(*objects), end="")
    return exits.OK


def _refuse_flags_that_do_not_fit(arguments: argparse.Namespace) -> None:
    to, output = arguments.to, arguments.output
    if to in _WRITTEN and arguments.into is None:
        raise verbs.Ended(f"--to {to} writes files; say where with --into FOLDER", exits.BAD_INPUT)
    if to not in _WRITTEN and arguments.into is not None:
        text = f"--into goes with --to terraform and --to pulumi; --to {to} prints, so write > FILE instead"
        raise verbs.Ended(text, exits.BAD_INPUT)
    if output is not None and to != "yaml" and (to, output) != ("manifest", "yaml"):
        does = "writes files of its own" if to in _WRITTEN else "prints YAML"
        raise verbs.Ended(f"-o {output} goes with --to yaml; --to {to} {does}", exits.BAD_INPUT)


def _write(arguments: argparse.Namespace, loaded: list[Loaded]) -> int:
    """A module or project is several files, so they go into a folder: namespace/name below it if there are several."""
    files: dict[tuple[str, ...], dict[str, str]] = {}
    for one in loaded:
        below: tuple[str, ...] = () if len(loaded) == 1 else (names.namespace(one.manifest), one.manifest.metadata.name)
        files[below] = terraform.module(one.input) if arguments.to == "terraform" else _pulumi_files(one)
    for below in files:
        _refuse_the_other_kind(arguments.into.joinpath(*below), arguments.to)
    try:
        for below, made in sorted(files.items()):
            with folders.opened(arguments.into, below) as folder:
                _fill(folder, made, _IGNORED[arguments.to])
    except folders.FolderError as why:
        raise verbs.Ended(str(why), exits.BAD_INPUT) from why
    return exits.OK


def _fill(folder: Folder, files: Mapping[str, str], ignored: Sequence[str]) -> None:
    stale = [name for name in _written_earlier(folder) if name not in files]
    _ignore(folder, ignored)  # first: no secret is ever there without it
    for name, content in files.items():
        folder.put(name, content, folders.PRIVATE if name in _FOR_ITS_OWNER else folders.PUBLIC)
        verbs.say(f"wrote {folder.path / name}")
    for name in stale:
        folder.remove(name)
        verbs.say(f"removed {folder.path / name}, which the manifest no longer asks for")


def _ignore(folder: Folder, wanted: Sequence[str]) -> None:
    """Adds to a .gitignore what it lacks. Its other lines stay, and so does a file that is not an ordinary text."""
    mode, before = folder.mode(_GITIGNORE), folder.read(_GITIGNORE)
    if mode is not None and before is None:
        verbs.say(f"{folder.path / _GITIGNORE}: cannot be extended; keep {', '.join(wanted)} out of version control")
        return
    lines = [line.strip().removeprefix("/") for line in (before or "").splitlines()]
    missing = [line for line in wanted if line not in lines]
    if not missing:
        return
    end = "\n" if before and not before.endswith("\n") else ""
    text = "\n".join([f"{before or ''}{end}# These hold secrets (kubernetes-daemonset render).", *missing, ""])
    folder.put(_GITIGNORE, text, folders.PUBLIC if mode is None else mode)
    verbs.say(f"wrote {folder.path / _GITIGNORE}")


def _refuse_the_other_kind(folder: Path, to: str) -> None:
    for kind, patterns in _WRITTEN.items():
        if kind != to and any(True for pattern in patterns for _ in folder.glob(pattern)):
            raise verbs.Ended(f"{folder}: holds files for {kind.title()}; choose another folder", exits.BAD_INPUT)


def _written_earlier(folder: Folder) -> list[str]:
    """The objects' files of a module of ours: it names each of them itself. A Pulumi project has no such files."""
    main = folder.read(terraform.MAIN_FILE) or ""
    return [name for name in terraform.files_named_in(main) if folder.is_file(name)]


def _pulumi_files(one: Loaded) -> dict[str, str]:
    return pulumi_project.project_files() | {_STACK_INPUT: to_yaml(plain(one.input))}


def _explain(arguments: argparse.Namespace) -> int:
    try:
        found = explain(arguments.path)
    except NoSuchField as why:
        raise verbs.Ended(str(why), exits.BAD_INPUT) from why
    if arguments.output == "json":
        body = {"path": found.path, "type": found.type, "about": found.about}
        below = [{"name": one.name, "type": one.type, "about": one.about} for one in found.fields]
        print(show.as_json(body | {"fields": below}))
        return exits.OK
    path = on_one_line(found.path) or "KubernetesDaemonSet"
    print(f"{show.painted(path, show.BOLD)}: {found.type}\n{found.about}")
    if found.fields:
        print()
        print(show.table(("FIELD", "TYPE", "MEANING"), [(one.name, one.type, one.about) for one in found.fields]))
    return exits.OK


def _init(arguments: argparse.Namespace) -> int:
    known = starters()
    if arguments.name is None:
        about = {name: text.splitlines()[0].removeprefix("# ") for name, text in known.items()}
        print(show.table(("NAME", "WHAT IT IS"), list(about.items())))
        return exits.OK
    if arguments.name not in known:
        near = difflib.get_close_matches(arguments.name, known, n=1)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}"
        raise verbs.Ended(f'there is no manifest "{arguments.name}" to start from; {hint}', exits.BAD_INPUT)
    print(known[arguments.name], end="")
    return exits.OK


def starters() -> dict[str, str]:
    """Manifests to start from, by name."""
    folder = resources.files("kubernetes_daemonset") / "starters"
    files = sorted((one for one in folder.iterdir() if one.name.endswith(".yaml")), key=lambda one: one.name)
    return {one.name.removesuffix(".yaml"): one.read_text(encoding="utf-8") for one in files}
