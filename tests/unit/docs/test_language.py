"""Words that must not come back: documents, the chart, examples and the programs' messages use the field's language."""

import ast
import inspect
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.shell import ROOT
from tools.docs import tour

NUMBERS = "one|two|three|four|five|six|seven|eight|nine|ten|twenty|fifty|hundred|thousand"
COUNTED = "attempts|writes|calls|jobs?|requests|seconds|nodes|ms|verdicts?,?"
BANNED = {
    r"(?<!there )(?<!There )is no (?!longer\b)[a-z]+": "is not a valid …, is not …",
    r"at once": "immediately, or at the same time",
    r"for ever": "indefinitely",
    r"nobody|somebody|anybody|whoever": "the passive, or “you”",
    r"mend(?:s|ed|ing)?": "fix, repair",
    r"(?:is|are|was|were|be) told|tells|told": "reports, logs, prints",
    r"a word of|without a word": "a message, silently",
    r"the news of|(?<!mail, )news": "announcement, status update",
    r"as it comes": "by default, unmodified",
    r"at work|in work": "running, in progress",
    r"will not do|will do": "is not sufficient, is sufficient",
    r"(?:can|could|may) ?not be had|to be had": "is not available",
    r"hoped for|for the sake of|unforeseen": "expected, because of, unexpected",
    r"takes? (?:the|its) (?:label|taint|annotation) off|take the gate out": "remove",
    rf"(?:\d|\b(?:{NUMBERS})\b)[\d,.]*(?: (?:CPU )?[a-z]+)? an? (?:second|minute|hour)": "per second, per minute",
    rf"(?:CPU s|{COUNTED}) an? (?:second|minute|hour|node|attempt|pool)": "per second, per minute, per node",
    r"goes on|went on|gone silent|anew|again and again": "continues, does not respond, again, repeatedly",
    r"says? (?:so|no|nothing|which|why)|came of it|waits? for its turn": "reports, has no, result, queue",
    r"takes? the place|takes? away|taken off": "replaces, removes",
    r"asked for by|looked at": "requested by, checked",
    r"the operator's own win|can be had|bad (?:settings|configuration)|wrong settings": "take precedence, is invalid",
    r"colours?|behaviours?|licences?|cancelled|(?:un)?labelled|misspelt|synchronis\w+|recognise\w*": "US spelling",
}
PATTERN = re.compile(r"\b(?:" + "|".join(BANNED) + r")\b", re.IGNORECASE)
MAY = re.compile(r"\bmay\b")
OLD_NAMES = re.compile(
    r"\b(?:said|says?|wanted|refus(?:al|es?|ed)|mistakes?|amiss|lest|of ones own|someone|taken? off|has the say|rush)\b"
)
"""Words of old names of tests."""


def without_code(text: str) -> str:
    """Quoted output belongs to the program that prints it, and is checked there."""
    return without_quotes(re.sub(r"^(?: {4,}|\t).*$", "", text, flags=re.MULTILINE))


def without_quotes(text: str) -> str:
    text = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"`[^`\n]*`|\]\([^)]*\)", "…", text)


def comments(text: str) -> str:
    """Return the comments of YAML, a shell script or a Makefile, also those at the end of a line."""
    found = (re.search(r"(?:^|\s)#+(?: .*|$)", line) for line in text.splitlines())
    return "\n".join(comment.group().strip() for comment in found if comment)


def template_prose(text: str) -> str:
    """Return the comments of a template and the text that it prints, without actions."""
    return re.sub(r"\{\{(?!-? ?/\*).*?\}\}", "…", text)


def messages(code: str) -> Iterator[str]:
    """Return every string of a module except docstrings: log messages, errors, help."""
    tree = ast.parse(code)
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            yield node.value


def notes(code: str) -> Iterator[str]:
    """Return every docstring and comment of a module."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield inspect.cleandoc(node.value.value)
    for token in tokenize.generate_tokens(io.StringIO(code).readline):
        if token.type == tokenize.COMMENT:
            yield token.string


def found(text: str, *, may: bool = False) -> list[str]:
    """Return the banned phrases with the words around them, across line breaks."""
    text = " ".join(re.sub(r"^\s*#+ ?", "", line).strip() for line in text.splitlines())
    hits = [match for pattern in ([PATTERN, MAY] if may else [PATTERN]) for match in pattern.finditer(text)]
    return [text[max(0, hit.start() - 30) : hit.end() + 30] for hit in hits]


def prose() -> dict[str, str]:
    """Return the documents, the texts of the chart and the comments of the examples, without code."""
    texts = {}
    for path in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.md")]:
        name = str(path.relative_to(ROOT))
        if "decisions" not in path.parts:
            texts[name] = without_code(path.read_text())
    texts["CONTRIBUTING.md"] = without_code(tour.without_tables((ROOT / "CONTRIBUTING.md").read_text()))
    texts["CHANGELOG.md"] = texts["CHANGELOG.md"].partition("## Unreleased")[2].partition("\n## ")[0]
    chart = ROOT / "deploy" / "helm" / "kube-node-ready"
    texts |= {_name(path): template_prose(path.read_text()) for path in (chart / "templates").rglob("*.*")}
    texts |= {_name(path): path.read_text() for path in [*chart.glob("alerts*.yaml"), *chart.glob("*.json")]}
    texts[_name(chart / "values.yaml")] = comments((chart / "values.yaml").read_text())
    texts[_name(chart / "README.md")] = without_code((chart / "README.md").read_text())
    for path in [*_commented("examples", "scripts", "lab", "bench", "demo", "tools"), ROOT / "Makefile"]:
        texts[_name(path)] = comments(path.read_text())
    return texts


def _commented(*folders: str) -> Iterator[Path]:
    """Yield YAML files and scripts."""
    for path in (path for folder in folders for path in sorted((ROOT / folder).rglob("*"))):
        is_script = path.suffix in (".yaml", ".yml", ".sh") or not path.suffix
        if path.is_file() and is_script and "__pycache__" not in path.parts:
            yield path


def modules() -> dict[str, str]:
    paths = _modules("src", "lab", "bench", "release", "demo")
    return {_name(path): "\n".join(messages(path.read_text())) for path in paths}


def explanations() -> dict[str, str]:
    """Return the docstrings and comments of the programs and of the tools around them, without code."""
    paths = _modules("src", "lab", "bench", "release", "demo", "tools")
    return {_name(path): without_quotes("\n".join(notes(path.read_text()))) for path in paths}


def names(code: str) -> str:
    """Return the names of a module's tests as sentences."""
    defined = (
        node.name for node in ast.walk(ast.parse(code)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )
    return "".join(f"{name.replace('_', ' ')}.\n" for name in defined if name.startswith("test_"))


def _modules(*folders: str) -> list[Path]:
    paths = [path for folder in folders for path in (ROOT / folder).rglob("*.py")]
    return sorted(path for path in paths if not path.stem.endswith("_pb2"))


def _name(path: Path) -> str:
    return str(path.relative_to(ROOT))


PROSE, MODULES, EXPLANATIONS = prose(), modules(), explanations()
TESTS = {_name(path): path.read_text() for path in _modules("tests") if path != Path(__file__)}


@pytest.mark.parametrize("name", sorted(PROSE))
def test_documents_use_the_language_of_the_field(name: str) -> None:
    assert found(PROSE[name], may=True) == []


@pytest.mark.parametrize("name", sorted(MODULES))
def test_messages_use_the_language_of_the_field(name: str) -> None:
    assert found(MODULES[name], may=True) == []


@pytest.mark.parametrize("name", sorted(EXPLANATIONS))
def test_docstrings_and_comments_use_the_language_of_the_field(name: str) -> None:
    assert found(EXPLANATIONS[name]) == []


@pytest.mark.parametrize("name", sorted(TESTS))
def test_names_and_comments_of_tests_use_the_language_of_the_field(name: str) -> None:
    assert found(without_quotes("\n".join(notes(TESTS[name]))), may=True) == []
    assert found(names(TESTS[name]), may=True) + OLD_NAMES.findall(names(TESTS[name])) == []


@pytest.mark.parametrize(
    ("text", "hits"),
    [
        ("The node is released at\nonce.", 1),
        ("99999 is no port", 1),
        ("There is no gate. It is no longer gated.", 0),
        ("27 requests a second", 1),
        ("Ten nodes a second, five a second, 10 a second", 3),
        ("attempts a node, CPU s a minute", 2),
        ("ten nodes, and a second later one more", 0),
        ("after a second", 0),
        ("Nobody mends it.", 2),
        ("Looks at a node, by what came of it", 1),
        ("It reports 27 requests per second.", 0),
    ],
)
def test_planted_phrases_are_found(text: str, hits: int) -> None:
    assert len(found(text)) == hits


def test_planted_names_are_found() -> None:
    assert len(found(names("def test_nobody_is_told_at_once(): ...\n\n\ndef test_there_is_no_token(): ..."))) == 3


def test_comments_at_the_end_of_a_line_are_found() -> None:
    assert comments("key: a#b # at once\n# for ever\nother: 1\n") == "# at once\n# for ever"


def test_code_is_ignored_and_strings_are_separate_from_docstrings() -> None:
    assert found(without_code("See:\n\n    told at once\n\n`nobody` is quoted.\n")) == []
    assert list(messages('"""Told at once."""\nlog("Node verified")\n')) == ["Node verified"]
