"""Real memcached servers for test scripts."""
import contextlib
import os
import re
import socket
import subprocess
import tempfile
import time

from sockets import own_address


def start_memcached(path, *flags, program="memcached"):
    """On a unix socket; returns its process once it answers there. What a dead one left at `path` is taken away."""
    if os.path.exists(path):
        os.unlink(path)
    user = ["-u", "root"] if os.geteuid() == 0 else []
    process = subprocess.Popen([program, "-s", path, "-t", "1", *user, *flags], stdin=subprocess.DEVNULL)
    while not listens(path):
        assert process.poll() is None, f"{program} {flags} does not start"
        time.sleep(0.002)
    return process


def start_at(addresses, port, *flags, within=()):
    """At this port of one or more addresses, run by the command `within`; returns its process once it listens at all of them."""
    user = ["-u", "root"] if os.geteuid() == 0 or within else []
    process = subprocess.Popen([*within, "memcached", "-l", addresses, "-p", str(port), "-U", "0", "-t", "1", *user, *flags], stdin=subprocess.DEVNULL)
    for address in addresses.split(","):
        while socket.socket().connect_ex((address, port)) != 0:
            assert process.poll() is None, f"memcached -l {addresses} does not start"
            time.sleep(0.002)
    return process


def start_on_port(*flags, **environment):
    """On a port of 127.0.0.1 that the kernel chooses; returns the process and the port."""
    user = ["-u", "root"] if os.geteuid() == 0 else []
    with tempfile.NamedTemporaryFile("r", encoding="ascii") as told:
        process = subprocess.Popen(["memcached", "-l", "127.0.0.1", "-p", "-1", "-U", "0", "-t", "1", *user, *flags], stdin=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL, env={**os.environ, **environment, "MEMCACHED_PORT_FILENAME": told.name})
        while not (found := re.search(r"INET: (\d+)\n", text_of(told.name))):
            assert process.poll() is None, f"memcached {flags} does not start"
            time.sleep(0.002)
        return process, int(found[1])


def text_of(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def start_twemproxy(path, servers, *settings):
    """nutcracker on a unix socket before servers by their names; returns its process once it answers there."""
    configuration = path + ".yml"
    with open(configuration, "w", encoding="utf-8") as file:
        file.write("\n  ".join(["alpha:", f"listen: {path} 0600", "distribution: ketama", *settings, "servers:",
                                *(f"- {server}:1 {name}" for name, server in servers.items())]) + "\n")
    # Its statistics need a port, for which there is no switch to turn them off.
    process = subprocess.Popen(["nutcracker", "-c", configuration, "-a", own_address()], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
    while not listens(path):
        assert process.poll() is None, "nutcracker does not start"
        time.sleep(0.002)
    return process


def end(*processes):
    """Also those that were stopped, or have ended."""
    for process in processes:
        process.kill()
        process.wait()


class Servers:
    """So many servers, or those of these names, on unix sockets in a fresh directory. When the block ends, they have ended, also
    those that were stopped or put in the place of others in `processes`."""

    def __init__(self, names=1, *flags):
        self.names = [f"m{number}" for number in range(names)] if isinstance(names, int) else list(names)
        self.flags, self.processes = flags, []

    def __enter__(self):
        self._folder = tempfile.TemporaryDirectory(prefix="mcds-test-")
        self.directory = self._folder.name
        self.paths = [os.path.join(self.directory, name) for name in self.names]
        self.list = ",".join("unix:" + path for path in self.paths)
        try:
            for path in self.paths:
                self.processes.append(start_memcached(path, *self.flags))
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        end(*self.processes)
        self._folder.cleanup()

    def start(self, *flags):
        """One more; returns its path."""
        self.paths.append(os.path.join(self.directory, f"more{len(self.paths)}"))
        self.processes.append(start_memcached(self.paths[-1], *flags))
        return self.paths[-1]

    def restart(self, number):
        """It comes back empty."""
        end(self.processes[number])
        self.processes[number] = start_memcached(self.paths[number], *self.flags)


@contextlib.contextmanager
def running(path, *flags):
    """A server's process, which has ended when the block ends."""
    process = start_memcached(path, *flags)
    try:
        yield process
    finally:
        end(process)


def listens(path):
    # The file is there before anybody listens.
    with socket.socket(socket.AF_UNIX) as probe:
        return probe.connect_ex(path) == 0


@contextlib.contextmanager
def connected(path):
    """A file of bytes, both ways."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(path)
        with connection.makefile("rwb") as file:
            yield file


def ask(path, line):
    """The first line of the answer to one line, or to a store with its value."""
    with connected(path) as file:
        file.write((line if isinstance(line, bytes) else line.encode()) + b"\r\n")
        file.flush()
        return file.readline().rstrip()


def item(path, key):
    """Its value, or None."""
    with connected(path) as file:
        found = _got(file, key.encode())
        return found and found[1][:-2]


def store(path, key, value, flags=0):
    assert ask(path, f"set {key} {flags} 0 {len(value)}\r\n{value}") == b"STORED", f"{key} is not stored"


def flush(*paths):
    for path in paths:
        assert ask(path, "flush_all") == b"OK"


def statistics(path, what=""):
    with connected(path) as file:
        file.write(f"stats {what}".strip().encode() + b"\r\n")
        file.flush()
        return dict(line.decode().rstrip().split(" ", 2)[1:] for line in iter(file.readline, b"END\r\n"))


def items(paths):
    """(number, key) to (flags, value) of every item."""
    found = {}
    for number, path in enumerate(paths):
        with connected(path) as file:
            for key in set(dumped(file, by="hash")):
                if (item := _got(file, key)) is not None:
                    found[number, key] = item
    return found


def keys(path):
    with connected(path) as file:
        return {key.decode() for key in dumped(file)}


def dumped(file, by="all"):
    """The keys that a server lists; `by` its hash table (1.6.9 and later) none that are in use are left out. It is busy while
    its crawler goes its own round."""
    while True:
        file.write(f"lru_crawler metadump {by}\r\n".encode())
        file.flush()
        line = file.readline().rstrip()
        if not line.startswith((b"BUSY", b"ERROR")):
            break
        time.sleep(0.01)
    while line != b"END":
        assert line, "the server closed the connection"
        if line.startswith(b"key="):
            first, *rest = line.split(b" ")[0].removeprefix(b"key=").split(b"%")
            yield first + b"".join(bytes([int(part[:2], 16)]) + part[2:] for part in rest)
        line = file.readline().rstrip()


def _got(file, key):
    file.write(b"get " + key + b"\r\n")
    file.flush()
    head = file.readline().split()
    if head[0] == b"END":
        return None
    item = (head[2], file.read(int(head[3]) + 2))
    file.readline()
    return item
