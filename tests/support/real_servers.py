"""Real memcached servers for test scripts."""
import os
import socket
import subprocess
import time


def start_memcached(path, *flags):
    """On a unix socket; returns its process once it answers there. What a dead one left at `path` is taken away."""
    if os.path.exists(path):
        os.unlink(path)
    user = ["-u", "root"] if os.geteuid() == 0 else []
    process = subprocess.Popen(["memcached", "-s", path, "-t", "1", *user, *flags], stdin=subprocess.DEVNULL)
    while not listens(path):
        assert process.poll() is None, f"memcached {flags} does not start"
        time.sleep(0.002)
    return process


def listens(path):
    # The file is there before anybody listens.
    with socket.socket(socket.AF_UNIX) as probe:
        return probe.connect_ex(path) == 0
