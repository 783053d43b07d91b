"""Validation of manifests."""
