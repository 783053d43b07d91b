"""Errors that a user can fix. The command line prints only the message."""


class LabError(Exception):
    """The lab cannot do what was requested; the message has the cause and the remedy."""


class ComponentDiedError(LabError):
    """A program of the plane exited unexpectedly; the message contains the end of its log."""


class NotReadyInTimeError(LabError):
    """A condition was not met in time."""
