"""The `kubernetes-daemonset` command."""
