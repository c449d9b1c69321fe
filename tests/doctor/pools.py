"""Pools of real servers for the doctor, and what is done to them while it looks."""
import contextlib
import itertools
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from program import MCDS, clean_environment
from real_servers import start_memcached
from stub import Stub, pass_on

PATIENCE_S = 60
OTHER_PROGRAMS = ("nc", "openssl", "ss", "timedatectl")
# In the place of nc -U PATH and nc HOST PORT; it ends with 70 if the server refuses something, or does not end.
NETCAT = """#!/usr/bin/python3
import socket, sys
server = socket.socket(socket.AF_UNIX) if sys.argv[1] == "-U" else socket.socket()
server.connect(sys.argv[2] if sys.argv[1] == "-U" else (sys.argv[1], int(sys.argv[2])))
server.sendall(sys.stdin.buffer.read())
server.settimeout(5)
try:
    said = server.makefile().read()
except TimeoutError:
    said = "ERROR"
print(said)
sys.exit(70 if "ERROR" in said else 0)
"""


class Client:
    """One connection, and how much of a reply is read is said by the caller."""

    def __init__(self, where):
        self.socket = socket.socket(socket.AF_UNIX) if isinstance(where, str) else socket.socket()
        self.socket.settimeout(PATIENCE_S)
        self.socket.connect(where if isinstance(where, str) else ("127.0.0.1", where))
        self.file = self.socket.makefile("rb")

    def ask(self, text, replies=1):
        """The first words of so many replies of one line; a VALUE is read to its END."""
        self.socket.sendall(text if isinstance(text, bytes) else text.encode())
        return [self.reply() for _ in range(replies)]

    def reply(self):
        line = self.file.readline()
        if not line or line.startswith(b"ERROR Too many"):
            raise OSError("closed")
        found = line
        while line.startswith(b"VALUE "):
            self.file.read(int(line.split()[3]) + 2)
            line = self.file.readline()
        return found.strip()

    def stats(self, argument=""):
        self.socket.sendall(f"stats {argument}".strip().encode() + b"\r\n")
        return {line.split()[1].decode(): line.split(b" ", 2)[2].strip().decode() for line in iter(self.file.readline, b"END\r\n")}

    def close(self):
        self.file.close()
        self.socket.close()


def store(key, size=10, ttl=0):
    return f"set {key} 0 {ttl} {size}\r\n".encode() + b"x" * size + b"\r\n"


class Ward:
    """The servers of one case, in a directory of its own; all of it is gone at the end."""

    def __init__(self, directory):
        self.directory = directory
        self.stack = contextlib.ExitStack()
        self.paths, self.processes = [], []
        self.ended = threading.Event()
        self.bursts = 0  # of what was sent through relays
        self.options, self.environment, self.before = [], {}, []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.ended.set()
        self.stack.close()

    def server(self, *flags, command=None):
        """A memcached on a unix socket; its number."""
        path = os.path.join(self.directory, f"m{len(self.paths) + 1}")
        process = start_memcached(path, *flags) if command is None else self.started([*command, "-s", path, *flags], path)
        self.stack.callback(self.stop, process)
        self.paths.append(path)
        self.processes.append(process)
        return len(self.paths) - 1

    def started(self, command, where, **more):
        """Any other program, once it listens at a path or on a port."""
        user = ["-u", "root"] if os.geteuid() == 0 and "memcached" in " ".join(command[:6]) else []
        # A group of its own: faketime has the server for a child.
        process = subprocess.Popen([*command, *user], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                   start_new_session=True, **more)
        for _ in range(PATIENCE_S * 100):
            with contextlib.suppress(OSError):
                Client(where).close()
                return process
            assert process.poll() is None, f"{command} does not start"
            time.sleep(0.01)
        raise AssertionError(f"{command} does not listen")

    def program(self, command, where, **more):
        process = self.started(command, where, **more)
        self.stack.callback(self.stop, process)
        return process

    def servers(self, count, *flags):
        return [self.server(*flags) for _ in range(count)]

    @staticmethod
    def stop(process):
        if process.poll() is None:
            own = os.getpgid(process.pid) == process.pid
            for number in (signal.SIGCONT, signal.SIGKILL):
                (os.killpg if own else os.kill)(process.pid, number)
        process.wait()

    def client(self, number=0):
        client = Client(self.paths[number])
        self.stack.callback(client.close)
        return client

    def stub(self, serve):
        """A stand-in; its number."""
        path = os.path.join(self.directory, f"m{len(self.paths) + 1}")
        self.stack.enter_context(Stub(serve, path))
        self.paths.append(path)
        self.processes.append(None)
        return len(self.paths) - 1

    def relay(self, number, change=lambda data: data, delay=0.0, port=None):
        """A stand-in before a real server, or what listens at a port: what that says is changed, or comes late. Its number."""
        upstream = ("127.0.0.1", port) if port else self.paths[number]

        def counted(data):
            self.bursts += 1
            return data

        def late(data):
            time.sleep(delay)
            return change(data)

        def serve(connection):
            with socket.socket(socket.AF_INET if port else socket.AF_UNIX) as server:
                server.connect(upstream)
                pass_on(connection, server, counted, late)
        return self.stub(serve)

    def balancer(self, *numbers):
        """A door behind which each connection meets the next of these servers. Its number."""
        others = itertools.cycle([self.paths[number] for number in numbers])

        def serve(connection):
            with socket.socket(socket.AF_UNIX) as server:
                server.connect(next(others))
                pass_on(connection, server)
        return self.stub(serve)

    def hosts(self, *lines):
        """For the doctor alone, this is /etc/hosts."""
        path = os.path.join(self.directory, "hosts")
        with open(path, "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")
        rights = [] if os.geteuid() == 0 else ["--map-root-user"]
        self.before = ["unshare", "--mount", *rights, "sh", "-c", f'mount --bind "{path}" /etc/hosts && exec "$@"', "sh"]

    def meanwhile(self, act):
        """Again and again until the case ends."""
        def go():
            with contextlib.suppress(OSError):
                while not self.ended.is_set():
                    act()
        thread = threading.Thread(target=go, daemon=True)
        thread.start()
        self.stack.callback(thread.join, 5)

    def load(self, number, text, replies, pause=0.002):
        """`text` is sent again and again, or what it returns if it is a function."""
        client = Client(self.paths[number])
        self.stack.callback(client.close)

        def act():
            client.ask(text() if callable(text) else text, replies)
            time.sleep(pause)
        self.meanwhile(act)

    def once(self, act, after=0.4):
        """Between the looks."""
        timer = threading.Timer(after, act)
        timer.start()
        self.stack.callback(timer.join)

    def names(self, *numbers):
        return ["unix:" + self.paths[number] for number in (numbers or range(len(self.paths)))]

    def own_environment(self):
        return clean_environment(HOME=self.directory, **self.environment)

    def follow(self, advice):
        """Runs the commands of an advice in sh, for a moment where it names a time, with stand-ins for other programs than mcds.
        Yields each with its exit code, what it said, and the servers that it asked."""
        programs = os.path.join(self.directory, "programs")
        if not os.path.exists(programs):
            os.mkdir(programs)
            os.symlink(MCDS, os.path.join(programs, "mcds"))
            for name in OTHER_PROGRAMS:
                with open(os.path.join(programs, name), "w", encoding="ascii", opener=lambda path, flags: os.open(path, flags, 0o755)) as file:
                    file.write(NETCAT if name == "nc" else "#!/bin/sh\n")
        for piece in advice.split("; "):
            found = re.search(r"\b(" + "|".join(("mcds", "printf", *OTHER_PROGRAMS)) + r") .*", piece)
            if found is None:
                continue
            command = re.sub(r"--(for|every) \S+", r"--\1 100ms", found[0])
            command += (" -n 1" if "--every" in command else "") + (" -v" if command.startswith("mcds ") else "")
            environment = {**self.own_environment(), "PATH": programs + ":/usr/bin:/bin"}
            done = subprocess.run([*self.before, "sh", "-c", command], env=environment, capture_output=True, text=True, check=False,
                                  timeout=PATIENCE_S, cwd=self.directory, stdin=subprocess.DEVNULL)
            asked = set(re.findall(r"^mcds: (\S+) .* us, ", done.stderr, re.M))
            yield found[0], done.returncode, done.stdout + done.stderr, asked

    def doctor(self, pool, *words, interval="1s"):
        """Exit code, the findings, the last line."""
        environment = self.own_environment()
        command = [*self.before, MCDS, "-s", pool, "doctor", "--for", interval, *words, *self.options]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=PATIENCE_S, cwd=self.directory)
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        return done.returncode, lines[:-1], (lines or [{}])[-1], done.stderr
