"""Real memcached servers on loopback: on ports the kernel chooses, on the default port, on unix sockets."""
import os
import socket
import sys
from dataclasses import dataclass

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from real_servers import end, start_at, start_memcached, start_on_port
from sockets import own_address

DEADLINE_S = 20


@dataclass(frozen=True)
class Server:
    """A server as a pool lists it: `host` is what the client is told; the address asked may be another spelling."""
    host: str = ""
    port: int = 0
    path: str = ""
    weight: int = 1
    name: str = ""
    connects_to: str = ""

    def for_mcds(self):
        address = f"unix:{self.path}" if self.path else f"{self.host}:{self.port}"
        named = f"{self.name}=" if self.name else ""
        return named + address + (f"/?{self.weight}" if self.weight != 1 else "")

    def for_writer(self):
        """HOST|PORT|WEIGHT|NAME; a path with port 0 for a unix socket."""
        return f"{self.path or self.host}|{self.port}|{self.weight}|{self.name}"

    def connect(self):
        if self.path:
            connection = socket.socket(socket.AF_UNIX)
            connection.connect(self.path)
            return connection
        return socket.create_connection((self.connects_to or self.host, self.port), timeout=DEADLINE_S)


def empty(servers):
    for server in servers:
        with server.connect() as connection:
            connection.sendall(b"flush_all\r\n")
            connection.recv(100)


class Asker:
    """The text protocol, as little as asking a server takes."""

    def __init__(self, server):
        self.socket = server.connect()
        self.socket.settimeout(DEADLINE_S)
        self.file = self.socket.makefile("rb")

    def close(self):
        self.file.close()
        self.socket.close()

    def get(self, keys):
        values = {}
        for start in range(0, len(keys), 50):
            self.socket.sendall(b"get " + b" ".join(keys[start:start + 50]) + b"\r\n")
            while (line := self.file.readline().split()) != [b"END"]:
                if len(line) < 4 or line[0] != b"VALUE":
                    raise RuntimeError(f"not an answer to get: {line}")
                values[line[1]] = self.file.read(int(line[3]) + 2)[:-2]
        return values

    def store(self, key, value):
        self.socket.sendall(b"set %b 0 0 %d\r\n%b\r\n" % (key, len(value), value))
        answer = self.file.readline().strip()
        if answer != b"STORED":
            raise RuntimeError(f"set {key!r}: {answer!r}")


class Memcacheds:
    """Starts servers, all of them ended by close()."""

    def __init__(self, directory):
        self.directory = directory
        self.processes = []
        self.process_of = {}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        end(*self.processes)

    def on_kernel_port(self):
        process, port = start_on_port("-m", "64")
        self.processes.append(process)
        server = Server("127.0.0.1", port)
        self.process_of[server] = process
        return server

    def kill(self, server):
        """Nobody listens there any more."""
        end(self.process_of[server])

    def on_default_port(self):
        """On 11211 of a loopback address of its own: clients leave the default port out of a server's name, or do not."""
        server = Server(own_address(len(self.processes)), 11211)
        self.processes.append(start_at(server.host, server.port, "-m", "64"))
        return server

    def on_socket(self):
        server = Server(path=os.path.join(self.directory, f"m{len(self.processes)}.sock"))
        self.processes.append(start_memcached(server.path, "-m", "64"))
        return server
