"""What can go wrong in a way a person can mend. The text is the whole story: the command line prints it alone."""


class LabError(Exception):
    """The lab cannot do what was asked; the message says why and what would help."""


class ComponentDiedError(LabError):
    """A program of the plane ended though nobody stopped it; the message holds the end of its log."""


class NotReadyInTimeError(LabError):
    """Something that was waited for did not come about."""
