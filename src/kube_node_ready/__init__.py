"""Keeps workloads off a new Kubernetes node until the node has proved that its network works."""

__version__ = "1.0.0-alpha.1"
# Which commit, and when it was built: release/build_info.py fills these in where an image or an executable is made.
__commit__ = ""
__built__ = ""
