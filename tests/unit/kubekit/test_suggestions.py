import pytest

from kubekit.suggestions import did_you_mean

VERBS = ("status", "explain", "verify", "pause")


@pytest.mark.parametrize(
    ("word", "meant"),
    [("statu", "status"), ("expalin", "explain"), ("verify", "verify"), ("zzz", None), ("", None), ("STATUS", None)],
)
def test_the_most_similar_word_is_suggested(word: str, meant: str | None) -> None:
    assert did_you_mean(word, VERBS) == meant


def test_without_choices_there_is_no_suggestion() -> None:
    assert did_you_mean("status", ()) is None


def test_choices_can_be_read_once() -> None:
    assert did_you_mean("statu", iter(VERBS)) == "status"


def test_a_higher_cutoff_requires_more_similarity() -> None:
    assert did_you_mean("KubernetesDaemonset", ["KubernetesDaemonSet"], cutoff=0.9) == "KubernetesDaemonSet"
    assert did_you_mean("KubernetesDeployment", ["KubernetesDaemonSet"], cutoff=0.9) is None


def test_normalized_words_are_compared_and_the_choice_is_returned_as_it_is() -> None:
    assert did_you_mean("MAXRETRYS", ["maxRetries", "payload"], normalize=str.lower) == "maxRetries"


def test_of_choices_that_are_equal_when_normalized_the_last_is_returned() -> None:
    assert did_you_mean("logleve", ["LogLevel", "logLevel"], normalize=str.lower) == "logLevel"
