"""The known word that a mistyped one probably stands for."""

from collections.abc import Callable, Iterable

_CUTOFF = 0.6  # difflib's own default


def did_you_mean(
    word: str,
    choices: Iterable[str],
    *,
    cutoff: float = _CUTOFF,
    normalize: Callable[[str], str] = str,
) -> str | None:
    """Return the choice that is most similar to the word, or None if none is similar enough.

    `cutoff` is the least similarity, from 0 to 1. Words are compared as `normalize` returns them: with `str.lower`,
    capitals do not count. Of choices that are equal then, the last one is returned.
    """
    import difflib  # noqa: PLC0415  only a typo pays for it: the worker starts on every new node

    by_form = {normalize(choice): choice for choice in choices}
    form, longest = normalize(word), max(map(len, by_form), default=0)
    if cutoff * (len(form) + longest) > 2 * longest:  # too long for any of them, which difflib finds out very slowly
        return None
    close = difflib.get_close_matches(form, by_form, n=1, cutoff=cutoff)
    return by_form[close[0]] if close else None
