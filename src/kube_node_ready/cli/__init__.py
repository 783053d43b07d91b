"""The everyday command line: the controller's decisions as a user sees them, with the user's own permissions.

They are computed by `verification.decide` from the same objects and the same configuration, so they cannot differ from
the controller's. Only `verify`, `pause` and `resume` write to the cluster.
"""
