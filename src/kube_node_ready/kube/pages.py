"""Limit how many pages a list of the API server can have."""

from kube_node_ready.kube.errors import KubeError

MAX_PAGES = 1000
"""With 500 objects per page, five times as many as in a cluster of 100,000 nodes."""


class EndlessList(KubeError):  # noqa: N818  named as the errors of the API are
    def __init__(self, path: str, reason: str) -> None:
        super().__init__(0, "Garbled", f"{path}: the list does not end: {reason}")


class Pages:
    """The tokens of one list."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._seen: set[int] = set()

    def after(self, token: str) -> dict[str, str]:
        """Return the parameters of the page with this token."""
        if hash(token) in self._seen:
            raise EndlessList(self._path, "the API server repeats a continue token")
        self._seen.add(hash(token))  # not the token, which can be long
        if len(self._seen) >= MAX_PAGES:
            raise EndlessList(self._path, f"it has more than {MAX_PAGES} pages")
        return {"continue": token}
