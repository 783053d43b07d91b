"""Rendered objects -> a cluster, or the files of a tool that deploys them."""
