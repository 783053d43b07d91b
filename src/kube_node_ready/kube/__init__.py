"""Kubernetes, and nothing of verification: requests, caches kept by watches, a queue of keys, a Lease to hold."""
