"""Manifests: parsed with the location of every field, modified by `--set`, and written."""
