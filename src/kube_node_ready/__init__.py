"""Keeps workloads off a new Kubernetes node until the node has proved that its network works."""

__version__ = "0.1.0"
