"""What holds for every text that the shared modules read."""

from decimal import Decimal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kube_node_ready.api.paths import is_dns_subdomain
from kubekit import durations, names, quantities
from kubekit.suggestions import did_you_mean

NAME_TEXTS = st.text("abAB09-_./\n", max_size=70) | st.from_regex(names.SUBDOMAIN.pattern, fullmatch=True)
WORDS = st.text("abcdeABC_-", max_size=12)


@given(NAME_TEXTS)
@example("a" * 254)
@example(f"{'a' * 64}.b")
def test_paths_of_requests_accept_the_same_subdomains(text: str) -> None:
    assert names.SUBDOMAIN.matches(text) == is_dns_subdomain(text)


@given(NAME_TEXTS)
def test_strict_names_are_names(text: str) -> None:
    assert names.SUBDOMAIN.matches(text) or not names.STRICT_SUBDOMAIN.matches(text)
    assert names.QUALIFIED_NAME.matches(text) or not names.STRICT_QUALIFIED_NAME.matches(text)
    assert names.STRICT_SUBDOMAIN.matches(text) or not names.LABEL.matches(text)


@given(st.integers(0, 99), st.integers(0, 99), st.integers(0, 99), st.integers(0, 999))
def test_durations_add_up(hours: int, minutes: int, seconds: int, milliseconds: int) -> None:
    text = f"{hours}h{minutes}m{seconds}s{milliseconds}ms"
    expected = hours * 3600 + minutes * 60 + seconds + Decimal(milliseconds) / 1000
    assert durations.parse(text, Decimal) == expected
    assert durations.parse(text, float) == pytest.approx(float(expected))


@given(st.text("0123456789.hms -+e", max_size=12) | st.text(max_size=12))
def test_any_text_is_a_duration_or_none(text: str) -> None:
    seconds = durations.parse(text, Decimal, number=durations.UNICODE_NUMBER)
    assert seconds is None or seconds >= 0


@given(st.from_regex(quantities.UNSIGNED_PATTERN, fullmatch=True, alphabet=st.characters(codec="ascii")))
def test_every_quantity_of_the_configuration_is_one(text: str) -> None:
    amount = quantities.parse(text)
    assert amount is not None
    assert amount >= 0


@given(st.from_regex(r"[0-9]{1,4}(\.[0-9]{1,2})? ?[kKmMgGtTpPeE][iI]?[bB]?", fullmatch=True))
def test_what_is_suggested_is_a_quantity(text: str) -> None:
    assert quantities.parse(quantities.suggest(text)) is not None


@given(WORDS, st.lists(WORDS))
def test_a_suggestion_is_one_of_the_choices(word: str, choices: list[str]) -> None:
    assert did_you_mean(word, choices) in [*choices, None]
    assert did_you_mean(word, choices, normalize=str.lower) in [*choices, None]


@given(WORDS.filter(bool), st.lists(WORDS))
def test_a_word_that_is_a_choice_is_suggested(word: str, choices: list[str]) -> None:
    assert did_you_mean(word, [*choices, word]) == word
