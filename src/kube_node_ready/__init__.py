"""Keeps workloads off a new Kubernetes node until the node has proved that its network works."""

__version__ = "0.1.0"
# Which commit, and when it was built: release/stamp.py fills these in where an image or an executable is made.
__commit__ = ""
__built__ = ""
