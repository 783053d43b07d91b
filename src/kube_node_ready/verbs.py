"""What `kube-node-ready` can be asked for, in the order in which it is told. Without a verb, it is DaemonSet mode."""

VERBS = {
    "status": "what each node is waiting for",
    "explain": "the whole story of one node, in plain words",
    "verify": "have nodes verified again, now",
    "check": "run the checks on this machine, here and now",
    "pause": "stop the removal of failed nodes: of all, or of some",
    "resume": "let it go on",
    "config": "check a configuration file before it is installed",
    "completion": "let the shell complete verbs, options and names of nodes",
}
COMPLETE = "__complete"
"""What the shell asks while someone types. Not for people, so it is told to none."""
