"""The controller's configuration, from YAML, environment and flags to one frozen Config.

Every source becomes part of one tree of written values (`document`), each of which knows where it was written. The tree
is read once, guided by the Structs (`model`, `pods`), so that every mistake is found in one go and can name its place.
`kube_node_ready.config` is the way in.
"""
