"""Programs that receive a signal at a critical moment of their start."""

STOPPED_AS_SOON_AS_IT_SERVES = (
    "import os, signal; from kube_node_ready import probes as serve\n"
    "serve.ProbeServer.start = lambda _: os.kill(os.getpid(), signal.SIGTERM)\n"
)
UNDISTURBED = (
    "import signal, threading, time\n"
    "threading.Thread(target=time.sleep, args=(3600,), daemon=True).start()\n"
    "signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])\n"
)
"""No signal wakes the main thread, since another one gets it: as if it had come right before the main one waits."""
