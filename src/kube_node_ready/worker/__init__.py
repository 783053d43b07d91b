"""Processes that use the standard library only: the worker, and the responder that workers connect to."""
