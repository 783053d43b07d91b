"""DaemonSet mode: each pod verifies the node it runs on. The controller's decisions and patches, without a controller.

One thread looks, decides and acts, and waits in between; `main` starts it. No asyncio and no client library: this
runs on every node.
"""
