"""The verbs that need no cluster, besides `validate`: render, explain, init."""

import argparse
import difflib
import os
from importlib import resources
from pathlib import Path
from typing import Final

from kubernetes_daemonset import exits, names, show, verbs
from kubernetes_daemonset.backends import pulumi_project, terraform
from kubernetes_daemonset.dump import manifest_yaml, plain, to_yaml
from kubernetes_daemonset.explain import NoSuchField, explain
from kubernetes_daemonset.manifest import Loaded
from kubernetes_daemonset.mistakes import ManifestError
from kubernetes_daemonset.resources import render
from kubernetes_daemonset.terminal import on_one_line

_STACK_INPUT: Final = "stack-input.yaml"
# What is written into a folder, and the files by which a folder is known to be for it.
_WRITTEN: Final = {"terraform": ("*.tf", "*.tf.json"), "pulumi": ("Pulumi.yaml", "Pulumi.yml")}
# Files that hold secrets, if there are any.
_FOR_ITS_OWNER: Final = {_STACK_INPUT, terraform.SECRETS_FILE}


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
    files: dict[Path, str] = {}
    for one in loaded:
        below = () if len(loaded) == 1 else (names.namespace(one.manifest), one.manifest.metadata.name)
        made = terraform.module(one.input) if arguments.to == "terraform" else _pulumi_files(one)
        files |= {arguments.into.joinpath(*below, name): content for name, content in made.items()}
    folders = sorted({path.parent for path in files})
    for folder in folders:
        _refuse_the_other_kind(folder, arguments.to)
    stale = [path for folder in folders for path in _written_earlier(folder) if path not in files]
    for path, content in files.items():
        try:
            _put(path, content)
        except OSError as why:
            raise verbs.Ended(f"{path}: cannot be written: {why.strerror}", exits.BAD_INPUT) from why
        verbs.say(f"wrote {path}")
    for path in stale:
        try:
            path.unlink()
        except OSError as why:
            raise verbs.Ended(f"{path}: cannot be removed: {why.strerror}", exits.BAD_INPUT) from why
        verbs.say(f"removed {path}, which the manifest no longer asks for")
    return exits.OK


def _refuse_the_other_kind(folder: Path, to: str) -> None:
    for kind, patterns in _WRITTEN.items():
        if kind != to and any(True for pattern in patterns for _ in folder.glob(pattern)):
            raise verbs.Ended(f"{folder}: holds files for {kind.title()}; choose another folder", exits.BAD_INPUT)


def _written_earlier(folder: Path) -> list[Path]:
    """The objects' files of a module of ours: it names each of them itself. A Pulumi project has no such files."""
    try:
        main = (folder / terraform.MAIN_FILE).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return []
    return [path for name in terraform.files_named_in(main) if (path := folder / name).is_file()]


def _put(path: Path, content: str) -> None:
    """Whole or not at all; what may hold secrets is its owner's from the first byte on."""
    path.parent.mkdir(parents=True, exist_ok=True)
    mode = 0o600 if path.name in _FOR_ITS_OWNER else 0o644
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "w", encoding="utf-8") as file:
        file.write(content)
    beside.replace(path)


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
