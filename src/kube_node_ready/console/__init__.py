"""The everyday command line: a person's view of what the controller decides, with that person's own rights.

What it tells is decided by `verify.decide`, from the same objects and the same configuration, so it cannot differ from
what the controller thinks. It writes in two places only: `again` and `halt`.
"""
