"""What the tests share that change a structure's number of copies on real servers: commands that follow refusals, a mover that is
killed at one of its sends, four servers.
"""
import contextlib
import os
import re
import signal
import subprocess
import sys
import tempfile

from real_servers import start_memcached

FULL = os.environ.get("MCDS_TEST_FULL", "") not in ("", "0")
NUMBERS = (2, 3, 1)
mcds = os.path.abspath(os.path.join(sys.argv[1], "tools", "mcds"))


def run(*words, stdin=None):
    return subprocess.run([mcds, *words], capture_output=True, text=True, check=False, timeout=120, input=stdin)


def told_copies(done):
    """The number that a refusal names, or None."""
    return told_number(done.returncode, done.stderr)


def told_number(status, stderr):
    told = re.search(r"is kept in (\d+) cop", stderr)
    return int(told.group(1)) if status == 65 and told else None


def kill_at(call, words):
    """Ends `words` at its n-th send; False: it had fewer."""
    done = subprocess.run(["strace", "-f", "-qq", "-o", "/dev/null", "-e", f"inject=sendto:signal=KILL:when={call}", mcds, *words],
                          capture_output=True, text=True, check=False, timeout=120)
    return done.returncode == -signal.SIGKILL


@contextlib.contextmanager
def four_servers(megabytes):
    """In MCDS_SERVERS; gives a fresh directory."""
    with tempfile.TemporaryDirectory() as directory:
        paths = [os.path.join(directory, f"m{number}.sock") for number in range(4)]
        servers = [start_memcached(path, "-m", str(megabytes)) for path in paths]
        os.environ["MCDS_SERVERS"] = ",".join(f"m{number}=unix:{path}" for number, path in enumerate(paths))
        try:
            yield directory
        finally:
            for server in servers:
                server.kill()
                server.wait()
