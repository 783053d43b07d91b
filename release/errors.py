class ReleaseError(Exception):
    """Nothing can be released; the message says why and what would help. The command line prints it alone."""
