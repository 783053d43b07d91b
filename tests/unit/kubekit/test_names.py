import pytest

from kubekit import names
from kubekit.names import Syntax

LONG_LABEL = "a" * 63
TOO_LONG_LABEL = "a" * 64
LONG_DOMAIN = ".".join([LONG_LABEL] * 3 + ["a" * 61])


@pytest.mark.parametrize(
    ("syntax", "right", "wrong"),
    [
        (names.LABEL, ["a", "0", "a-b", LONG_LABEL], ["", "A", "-a", "a-", "a.b", "a_b", TOO_LONG_LABEL, "a\n"]),
        (
            names.SUBDOMAIN,
            ["a", "a.b", "node-1.example", TOO_LONG_LABEL, LONG_DOMAIN],
            ["", ".", "a.", ".a", "a..b", "a.-b", "A", "a/b", f"{LONG_DOMAIN}a", "a\n"],
        ),
        (names.STRICT_SUBDOMAIN, ["a", "a.b", f"{LONG_LABEL}.b"], ["", "a..b", TOO_LONG_LABEL, f"b.{TOO_LONG_LABEL}"]),
        (
            names.QUALIFIED_NAME,
            ["a", "A_b.c-9", "example.com/Name", f"{TOO_LONG_LABEL}/a", f"{LONG_DOMAIN}/{LONG_LABEL}"],
            ["", "-a", "/a", "a/", "Example.com/a", "a/b/c", TOO_LONG_LABEL, f"{LONG_DOMAIN}a/b", "a\n"],
        ),
        (
            names.STRICT_QUALIFIED_NAME,
            ["a", "example.com/Name", f"{LONG_LABEL}.io/a"],
            ["", "a/", f"{TOO_LONG_LABEL}/a", f"{TOO_LONG_LABEL}.io/a"],
        ),
        (names.LABEL_VALUE, ["", "a", "A_b.c-9", LONG_LABEL], ["-a", "a-", "a b", "a/b", TOO_LONG_LABEL, "\n"]),
        (
            names.LABEL_SELECTOR,
            ["a", "!a", "a=b", "a==b,c!=d", "example.com/a in (b, c)", "a notin ()", " a = b "],
            ["", ",", "a=b,", "a in b", "=b", "a=b\n"],
        ),
    ],
    ids=["label", "subdomain", "strict subdomain", "qualified name", "strict qualified name", "value", "selector"],
)
def test_what_kubernetes_accepts(syntax: Syntax, right: list[str], wrong: list[str]) -> None:
    assert [text for text in right if not syntax.matches(text)] == []
    assert [text for text in wrong if syntax.matches(text)] == []


def test_a_selector_that_fails_takes_no_time() -> None:
    assert not names.LABEL_SELECTOR.matches(f"a in ({' ' * 990}")


@pytest.mark.parametrize(
    ("image", "parts"),
    [
        ("name", ("name", None, None)),
        ("name:1.2", ("name", "1.2", None)),
        ("registry:5000/name", ("registry:5000/name", None, None)),
        ("registry:5000/name:1.2@sha256:a", ("registry:5000/name", "1.2", "sha256:a")),
        ("name@", ("name", None, "")),
        ("", ("", None, None)),
    ],
)
def test_the_parts_of_an_image(image: str, parts: tuple[str, str | None, str | None]) -> None:
    assert names.image_parts(image) == parts
