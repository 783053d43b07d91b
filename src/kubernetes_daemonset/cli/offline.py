"""The commands that need no cluster, besides `validate`: render, explain, init."""

from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from types import SimpleNamespace
from typing import Final

from kubekit.suggestions import did_you_mean
from kubekit.terminal import on_one_line
from kubernetes_daemonset.cli import common, exit_codes, folders
from kubernetes_daemonset.cli import output as show
from kubernetes_daemonset.cli.folders import Folder
from kubernetes_daemonset.deploy import pulumi_project, terraform
from kubernetes_daemonset.errors import ManifestError
from kubernetes_daemonset.manifest.dump import manifest_yaml, to_json, to_yaml
from kubernetes_daemonset.manifest.explain import NoSuchField, explain
from kubernetes_daemonset.manifest.reader import Loaded
from kubernetes_daemonset.render import naming
from kubernetes_daemonset.render.resources import render

_STACK_INPUT: Final = "stack-input.yaml"
# What is written to a directory, and the files by which a directory of that kind is recognized.
_WRITTEN: Final = {"terraform": ("*.tf", "*.tf.json"), "pulumi": ("Pulumi.yaml", "Pulumi.yml")}
# Files that contain secrets, if there are any.
_FOR_ITS_OWNER: Final = {_STACK_INPUT, terraform.SECRETS_FILE}
_GITIGNORE: Final = ".gitignore"
# Files with secrets. Terraform keeps every attribute in its state.
_IGNORED: Final = {"terraform": (terraform.SECRETS_FILE, "*.tfstate", "*.tfstate.*"), "pulumi": (_STACK_INPUT,)}


def run(verb: str, arguments: SimpleNamespace) -> int:
    try:
        return {"render": _render, "explain": _explain, "init": _init}[verb](arguments)
    except ManifestError as error:
        return common.report_invalid(error)
    except common.Ended as error:
        return common.end(error)


def _render(arguments: SimpleNamespace) -> int:
    _refuse_flags_that_do_not_fit(arguments)
    loaded = common.valid(arguments)
    if arguments.to in _WRITTEN:
        return _write(arguments, loaded)
    if arguments.to == "manifest":
        print("---\n".join(manifest_yaml(document.manifest) for document in loaded), end="")
        return exit_codes.OK
    objects = [body for document in loaded for body in render(document.input)]
    if arguments.output == "json":
        print(show.as_json({"apiVersion": "v1", "kind": "List", "items": objects}))
    elif arguments.output == "table":
        rows = [(body["kind"], body["metadata"].get("namespace", ""), body["metadata"]["name"]) for body in objects]
        print(show.table(("KIND", "NAMESPACE", "NAME"), rows))
    else:
        print(to_yaml(*objects), end="")
    return exit_codes.OK


def _refuse_flags_that_do_not_fit(arguments: SimpleNamespace) -> None:
    to, output = arguments.to, arguments.output
    if to in _WRITTEN and arguments.into is None:
        raise common.Ended(f"--to {to} writes files; set their directory with --into FOLDER", exit_codes.BAD_INPUT)
    if to not in _WRITTEN and arguments.into is not None:
        text = (
            f"--into requires --to terraform or --to pulumi; --to {to} prints to standard output, so use > FILE instead"
        )
        raise common.Ended(text, exit_codes.BAD_INPUT)
    if output is not None and to != "yaml" and (to, output) != ("manifest", "yaml"):
        does = "writes files of a fixed format" if to in _WRITTEN else "prints YAML"
        raise common.Ended(f"-o {output} requires --to yaml; --to {to} {does}", exit_codes.BAD_INPUT)


def _write(arguments: SimpleNamespace, loaded: list[Loaded]) -> int:
    """Write a module or project to a directory; for several manifests, to namespace/name below it."""
    files: dict[tuple[str, ...], dict[str, str]] = {}
    for document in loaded:
        below: tuple[str, ...] = (
            () if len(loaded) == 1 else (naming.namespace(document.manifest), document.manifest.metadata.name)
        )
        files[below] = terraform.module(document.input) if arguments.to == "terraform" else _pulumi_files(document)
    for below in files:
        _refuse_the_other_kind(arguments.into.joinpath(*below), arguments.to)
    try:
        for below, content in sorted(files.items()):
            with folders.opened(arguments.into, below) as folder:
                _fill(folder, content, _IGNORED[arguments.to])
    except folders.FolderError as error:
        raise common.Ended(str(error), exit_codes.BAD_INPUT) from error
    return exit_codes.OK


def _fill(folder: Folder, files: Mapping[str, str], ignored: Sequence[str]) -> None:
    stale = [name for name in _written_earlier(folder) if name not in files]
    _ignore(folder, ignored)  # first: no secret is ever there without it
    for name, content in files.items():
        folder.put(name, content, folders.PRIVATE if name in _FOR_ITS_OWNER else folders.PUBLIC)
        common.say(f"wrote {folder.path / name}")
    for name in stale:
        folder.remove(name)
        common.say(f"removed {folder.path / name}, which the manifest no longer includes")


def _ignore(folder: Folder, wanted: Sequence[str]) -> None:
    """Add missing lines to a .gitignore. Its other lines are kept. A file that is not regular text is not changed."""
    found = folder.read(_GITIGNORE)
    if found is None and folder.exists(_GITIGNORE):
        common.say(f"cannot extend {folder.path / _GITIGNORE}; keep {', '.join(wanted)} out of version control")
        return
    before = found.content if found else ""
    # As git reads them: leading spaces count, only line feeds end a line, and later patterns take precedence, so lines
    # above a negated one are not sufficient.
    lines = [line.removesuffix("\r").rstrip(" ").removeprefix("/") for line in before.split("\n")]
    last = max((at for at, line in enumerate(lines) if line.startswith("!")), default=-1)
    missing = [line for line in wanted if line not in lines[last + 1 :]]
    if not missing:
        return
    end = "\n" if before and not before.endswith("\n") else ""
    text = "\n".join([f"{before}{end}# These contain secrets (kubernetes-daemonset render).", *missing, ""])
    # Another user might have prepared it. Stricter permissions stay; a setuid bit would run that user's text as ours.
    folder.put(_GITIGNORE, text, found.mode & folders.PUBLIC if found else folders.PUBLIC)
    common.say(f"wrote {folder.path / _GITIGNORE}")


def _refuse_the_other_kind(folder: Path, to: str) -> None:
    for kind, patterns in _WRITTEN.items():
        try:
            is_other = kind != to and any(True for pattern in patterns for _ in folder.glob(pattern))
        except OSError as error:
            raise common.Ended(f"cannot write {folder}: {error.strerror}", exit_codes.BAD_INPUT) from error
        if is_other:
            raise common.Ended(
                f"{folder}: contains files for {kind.title()}; choose another directory", exit_codes.BAD_INPUT
            )


def _written_earlier(folder: Folder) -> list[str]:
    """Return the object files of an earlier module, which names them. A Pulumi project has no such files.

    Only from a main file of the same user: one that another user prepared could name any file, to have it removed.
    """
    main = folder.read(terraform.MAIN_FILE)
    named = terraform.files_named_in(main.content) if main and main.is_own else []
    return [name for name in named if folder.is_file(name)]


def _pulumi_files(document: Loaded) -> dict[str, str]:
    return pulumi_project.project_files() | {_STACK_INPUT: to_yaml(to_json(document.input))}


def _explain(arguments: SimpleNamespace) -> int:
    try:
        found = explain(arguments.path)
    except NoSuchField as error:
        raise common.Ended(str(error), exit_codes.BAD_INPUT) from error
    if arguments.output == "json":
        body = {"path": found.path, "type": found.type, "about": found.about}
        below = [{"name": field.name, "type": field.type, "about": field.about} for field in found.fields]
        print(show.as_json(body | {"fields": below}))
        return exit_codes.OK
    path = on_one_line(found.path) or "KubernetesDaemonSet"
    print(f"{show.colorize(path, show.BOLD)}: {found.type}\n{found.about}")
    if found.fields:
        print()
        print(
            show.table(("FIELD", "TYPE", "MEANING"), [(field.name, field.type, field.about) for field in found.fields])
        )
    return exit_codes.OK


def _init(arguments: SimpleNamespace) -> int:
    known = starters()
    if arguments.name is None:
        about = {name: text.splitlines()[0].removeprefix("# ") for name, text in known.items()}
        print(show.table(("NAME", "WHAT IT IS"), list(about.items())))
        return exit_codes.OK
    if arguments.name not in known:
        near = did_you_mean(arguments.name, known)
        hint = f"did you mean {near}?" if near else f"expected {', '.join(known)}"
        raise common.Ended(f'there is no starter manifest "{arguments.name}"; {hint}', exit_codes.BAD_INPUT)
    print(known[arguments.name], end="")
    return exit_codes.OK


def starters() -> dict[str, str]:
    """Return the starter manifests by name."""
    folder = resources.files("kubernetes_daemonset") / "starters"
    files = sorted((file for file in folder.iterdir() if file.name.endswith(".yaml")), key=lambda file: file.name)
    return {file.name.removesuffix(".yaml"): file.read_text(encoding="utf-8") for file in files}
