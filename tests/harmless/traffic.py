"""A memcached server with many keys, and clients of it that measure how long they wait."""
import glob
import os
import random
import socket
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from real_servers import connected, end, start_memcached, statistics  # noqa: E402


def programs():
    """(name, path) of Debian's memcached, and of each in MCDS_TEST_SERVERS: DIR/NAME/memcached."""
    directory = os.environ.get("MCDS_TEST_SERVERS", "")
    others = sorted(glob.glob(os.path.join(directory, "*", "memcached"))) if directory else []
    if directory and not others:
        sys.exit(f"MCDS_TEST_SERVERS: no {directory}/*/memcached")
    return [("memcached", "memcached"), *((os.path.basename(os.path.dirname(path)), path) for path in others)]


class Memcached:
    """On a unix socket in `directory`."""

    def __init__(self, program, directory, *flags):
        self.path = os.path.join(directory, "memcached")
        self.address = f"unix:{self.path}"
        self.process = start_memcached(self.path, "-m", "1024", "-t", "4", *flags, program=program)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        end(self.process)

    def store(self, first, last, size=20):
        with connected(self.path) as file:
            value = b"x" * size
            for start in range(first, last, 5000):
                keys = range(start, min(start + 5000, last))
                file.write(b"".join(b"set key:%012d 0 0 %d noreply\r\n%s\r\n" % (key, size, value) for key in keys) + b"mn\r\n")
                file.flush()
                assert file.readline() == b"MN\r\n"

    def statistics(self):
        return statistics(self.path)

    def answers(self, within):
        """Whether each of many new connections, one for each of its threads at least, gets an answer."""
        for _ in range(8):
            with socket.socket(socket.AF_UNIX) as connection:
                connection.settimeout(within)
                try:
                    connection.connect(self.path)
                    connection.sendall(b"set alive 0 0 1\r\nx\r\n")
                    if not connection.recv(100).startswith(b"STORED"):
                        return False
                except TimeoutError:
                    return False
        return True


class Traffic:
    """Four clients that read keys at a fixed rate; their waits in seconds, the ones under way included."""

    def __init__(self, server, keys, rate=200):
        self.waits = []
        self._ends = threading.Event()
        self._threads = [threading.Thread(target=self._client, args=(server.path, keys, 4 / rate, seed)) for seed in range(4)]

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self._ends.set()
        for thread in self._threads:
            thread.join()

    def longest(self):
        return max(self.waits, default=0)

    def _client(self, path, keys, pause, seed):
        numbers = random.Random(seed)
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(path)
            due = time.monotonic()
            while not self._ends.is_set():
                due = max(due + pause, time.monotonic() - pause)
                time.sleep(max(0, due - time.monotonic()))
                began = time.monotonic()
                # Many, so that a lock on any part of the table is met.
                connection.sendall(b"get" + b"".join(b" key:%012d" % numbers.randrange(keys) for _ in range(50)) + b"\r\n")
                answer = b""
                while not answer.endswith(b"END\r\n"):
                    answer += connection.recv(4096)
                self.waits.append(time.monotonic() - began)
