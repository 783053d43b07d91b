"""The end of a process whose checks might still hang."""

import subprocess
import sys

PROGRAM = """
import atexit, sys, threading
from kube_node_ready.exit_now import exit_now
atexit.register(sys.stderr.write, "swept")
threading.Thread(target=threading.Event().wait).start()
print("said")
exit_now(3)
"""


def test_exit_does_not_wait_for_hanging_threads() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (3, "said\n", "swept")
