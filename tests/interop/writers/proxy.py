"""Starting a proxy that listens on a unix socket, for the time of a with statement."""
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager

DEADLINE_S = 20


def connected(path):
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.connect(path)
    except OSError:
        connection.close()
        return None
    connection.settimeout(DEADLINE_S)
    return connection


@contextmanager
def running(name, configuration, command):
    """`configuration` and `command` are functions of the directory; the proxy listens on `proxy.sock` in it."""
    with tempfile.TemporaryDirectory(prefix=f"mcds-{name}-") as directory:
        with open(os.path.join(directory, "config"), "w", encoding="utf-8") as file:
            file.write(configuration(directory))
        with open(os.path.join(directory, "log"), "w+b") as log:
            process = subprocess.Popen(command(directory), stdout=log, stderr=log, stdin=subprocess.DEVNULL)
            try:
                deadline = time.monotonic() + DEADLINE_S
                while (connection := connected(os.path.join(directory, "proxy.sock"))) is None:
                    if process.poll() is not None or time.monotonic() > deadline:
                        log.seek(0)
                        sys.exit(f"{name} does not start: " + log.read().decode("utf-8", "replace"))
                    time.sleep(0.002)
                with connection:
                    yield connection
            finally:
                process.send_signal(signal.SIGTERM)
                try:
                    process.wait(DEADLINE_S)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()
