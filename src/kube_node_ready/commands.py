"""List the commands of `kube-node-ready`, in the order of its help. Without a command, it runs DaemonSet mode."""

from kubekit.suggestions import did_you_mean

VERBS = {
    "status": "Show what each node is waiting for.",
    "explain": "Show the status and the history of one node.",
    "verify": "Request a new verification of nodes.",
    "check": "Run the checks on this machine.",
    "pause": "Pause the removal of failed nodes.",
    "resume": "Resume the removal of failed nodes.",
    "config": "Validate configuration files.",
    "completion": "Print a script for shell completion.",
    "help": "Show the help of a command.",
    "version": "Print the version and exit.",
}
CHANGING = frozenset({"verify", "pause", "resume"})
"""They write to the cluster, so a typo must not lead to them."""
PROGRAM = "kube-node-ready"
RESPOND = "respond"
"""What the chart's responder pods run. Not for people, so it is not listed."""
COMPLETE = "__complete"
"""The protocol of kubectl's completion. Not for people, so it is not listed."""
COMPLETE_VARIABLE = "_KUBE_NODE_READY_COMPLETE"
"""Set by the completion scripts of the shells."""


def meant(word: str) -> str | None:
    """Return the command that a mistyped one probably stands for, unless that one changes something."""
    nearest = did_you_mean(word, VERBS)
    return None if nearest in CHANGING else nearest
