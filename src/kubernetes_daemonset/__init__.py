"""A typed, validated manifest for node agents, and the means to deploy it."""

from importlib.metadata import version

__version__ = version("kube-node-ready")
