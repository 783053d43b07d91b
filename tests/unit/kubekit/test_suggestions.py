import difflib

import pytest

from kubekit.suggestions import did_you_mean

VERBS = ("status", "explain", "verify", "pause")


@pytest.mark.parametrize(
    ("word", "meant"),
    [("statu", "status"), ("expalin", "explain"), ("verify", "verify"), ("zzz", None), ("", None), ("STATUS", None)],
)
def test_the_most_similar_word_is_suggested(word: str, meant: str | None) -> None:
    assert did_you_mean(word, VERBS) == meant


def test_a_word_that_is_too_long_for_any_choice_is_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(difflib, "get_close_matches")
    assert did_you_mean("status" * 100_000, VERBS) is None


@pytest.mark.parametrize("length", range(1, 40))
def test_no_suggestion_is_lost_by_the_length(length: int) -> None:
    for cutoff in (0.1, 0.6, 0.9, 1.0):
        expected = difflib.get_close_matches("a" * length, ["a" * 7], n=1, cutoff=cutoff)
        assert did_you_mean("a" * length, ["a" * 7], cutoff=cutoff) == (expected[0] if expected else None)


def test_without_choices_there_is_no_suggestion() -> None:
    assert did_you_mean("status", ()) is None


def test_choices_can_be_read_once() -> None:
    assert did_you_mean("statu", iter(VERBS)) == "status"


def test_a_higher_cutoff_requires_more_similarity() -> None:
    assert did_you_mean("KubernetesDaemonset", ["KubernetesDaemonSet"], cutoff=0.9) == "KubernetesDaemonSet"
    assert did_you_mean("KubernetesDeployment", ["KubernetesDaemonSet"], cutoff=0.9) is None


def test_normalized_words_are_compared_and_the_choice_is_returned_as_it_is() -> None:
    assert did_you_mean("MAXRETRYS", ["maxRetries", "payload"], normalize=str.lower) == "maxRetries"


def test_the_length_is_that_of_the_normalized_word() -> None:
    assert did_you_mean("_".join("maxRetries") + "_" * 50, ["maxRetries"], normalize=lambda text: text.replace("_", ""))


def test_of_choices_that_are_equal_when_normalized_the_last_is_returned() -> None:
    assert did_you_mean("logleve", ["LogLevel", "logLevel"], normalize=str.lower) == "logLevel"
