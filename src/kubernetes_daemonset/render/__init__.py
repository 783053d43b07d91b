"""Render a message into Kubernetes objects. Pure."""
