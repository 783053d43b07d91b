"""Files with settings of a worker, in JSON or YAML.

Values are what PyYAML's safe loader makes of them, and are found without it where a file is JSON. Lines are looked up
only for diagnostics. Standard library only, and PyYAML where a file turns out to be YAML.
"""

import json

from kube_node_ready.checks import files
from kubekit.diagnostics import Diagnostic, DiagnosticsError, Location, truncate

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

Source = tuple[str, "Mapping[str, object]", str]
"""The name of a source, its values, and the text of a file, in which lines can be looked up."""

_MOST_KIB = 256
_MOST_MERGED = 1000
_LONGEST_NUMBER = 100
# What PyYAML raises, besides its own errors, for scalars that are not of the type that they look like or are tagged as.
_SCALAR_ERRORS = (ValueError, LookupError, AttributeError, TypeError, OverflowError)


def from_file(path: str) -> Source:
    """JSON is YAML too, and much cheaper to read."""
    try:
        text = files.read(path, _MOST_KIB)
    except OSError as error:
        raise _error(path, f"cannot read the file: {error.strerror}") from error
    try:
        tree = json.loads(text)
    except ValueError:
        tree = _yaml(text, path)
    except RecursionError as error:
        raise unreadable(path, "JSON", error) from error
    return path, mapping(tree, path), text


def mapping(tree: object, source: str) -> "Mapping[str, object]":
    if tree is None:
        return {}
    if not isinstance(tree, dict):
        noun = "a list" if isinstance(tree, list) else "text" if isinstance(tree, str) else "a single value"
        raise _error(source, f"has {noun}; expected a mapping such as checkTimeoutSeconds: 10")
    return tree


def unreadable(source: str, format: str, error: Exception) -> DiagnosticsError:  # noqa: A002  JSON or YAML
    reason = "it is nested too deeply" if isinstance(error, RecursionError) else truncate(str(error))
    return _error(source, f"not {format}: {reason}")


def with_lines(diagnostics: "Iterable[Diagnostic]", text: str) -> "Iterable[Diagnostic]":
    """Return the diagnostics with the lines of their fields, as far as these can be found."""
    from kubekit import yaml_nodes  # noqa: PLC0415  it needs PyYAML

    try:
        root = yaml_nodes.parse(text, "", [])
    except (DiagnosticsError, RecursionError):
        return diagnostics
    if not isinstance(root, yaml_nodes.Mapping):
        return diagnostics
    return [_with_line(diagnostic, yaml_nodes.locate(root, diagnostic.path)) for diagnostic in diagnostics]


def _with_line(diagnostic: Diagnostic, in_file: Location) -> Diagnostic:
    return diagnostic._replace(location=diagnostic.location._replace(line=in_file.line))


def _error(source: str, message: str) -> DiagnosticsError:
    return DiagnosticsError([Diagnostic("", message, Location(source))])


def _yaml(text: str, path: str) -> object:
    try:
        import yaml  # noqa: PLC0415  as dear as all checks together
    except ImportError as error:
        raise _error(path, "not JSON, and PyYAML, which reads YAML, is not installed") from error

    class Loader(yaml.SafeLoader):
        """Limits merge keys (`<<`): with aliases, a small file can merge billions of pairs."""

        depth = merged = 0

        def flatten_mapping(self, node: yaml.MappingNode) -> None:
            self.depth += 1
            super().flatten_mapping(node)  # calls this method for each mapping to merge into the node
            self.depth -= 1
            self.merged += len(node.value) if self.depth else 0
            if self.merged > _MOST_MERGED:
                raise yaml.constructor.ConstructorError(problem=f"it merges more than {_MOST_MERGED} keys")

    def bounded(loader: Loader, node: yaml.ScalarNode) -> object:
        """A long number to the base of 60, such as 1:30:00, would be calculated for seconds."""
        if ":" in node.value and len(node.value) > _LONGEST_NUMBER:
            raise yaml.constructor.ConstructorError(problem=f"a number has more than {_LONGEST_NUMBER} characters")
        return yaml.SafeLoader.yaml_constructors[node.tag](loader, node)

    for kind in ("int", "float"):
        Loader.add_constructor(f"tag:yaml.org,2002:{kind}", bounded)
    try:
        return yaml.load(text, Loader)  # noqa: S506  it is a safe one
    except yaml.YAMLError as error:
        raise _error(path, f"not YAML: {' '.join(str(error).split())}") from error
    except (RecursionError, *_SCALAR_ERRORS) as error:
        raise unreadable(path, "YAML", error) from error
