"""A network of this process's own, where addresses such as 10.0.0.1 are at hand: that of a rehearsal, whose servers are ended at
once so that tests start theirs. Nothing leaves it, and nothing in it outlives the test."""
import os
import signal
import sys


def enter(mcds, *addresses):
    """Runs this script anew inside, unless it already is."""
    if "MCDS_SANDBOX_PIDS" not in os.environ:
        os.execv(mcds, [mcds, "-s", ",".join(addresses), "sandbox", "--rehearse", "--", sys.executable, *sys.argv])
    for pid in os.environ["MCDS_SANDBOX_PIDS"].split(","):
        os.kill(int(pid), signal.SIGKILL)
    for name in [name for name in os.environ if name.startswith("MCDS_")]:
        del os.environ[name]
