"""Errors that a user can fix."""


class ReleaseError(Exception):
    """The release failed; the message has the cause and the remedy. The command line prints only the message."""
