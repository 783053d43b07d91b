"""Programs for those who work on this repository. Nothing here is shipped."""
