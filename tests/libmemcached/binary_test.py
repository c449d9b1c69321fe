#!/usr/bin/env python3
"""--protocol binary: every word of libmemcached that says something else than the server, on real servers; logins by SASL; a change
is sent once; and the conformance suite, on -B binary and on -S.

Usage: binary_test.py BUILD_DIR
"""
import os
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", part) for part in ("support", "conformance", "dialects")]
from checks import check, finish  # noqa: E402
from engines import refused_by  # noqa: E402
from program import MCDS, clean_environment  # noqa: E402
from real_servers import listens, running, start_memcached  # noqa: E402
from sockets import own_address  # noqa: E402
from stub import Stub  # noqa: E402
from suite import Suite  # noqa: E402

CLEAN = clean_environment(HOME="/nonexistent")
BINARY = ["--protocol", "binary", "--connect-timeout", "5s"]
PASSWORD = "of-the-app"


def run(server, *words, given="", timeout="5s", **environment):
    return subprocess.run([MCDS, "-s", server, *BINARY, "--timeout", timeout, *words], input=given, env=CLEAN | environment, capture_output=True, text=True, timeout=60,
                          check=False)


def answers(what, done, status, *shown):
    check(done.returncode == status and all(text in done.stdout + done.stderr for text in shown), f"{what}: wanted {status} {shown}, {done}")


def words_of_the_table(server):
    """Each row of `words` in binary.hpp, and what is said below it."""
    answers("get, missing", run(server, "item", "get", "nothing"), 1)
    answers("set", run(server, "item", "set", "text", "some text"), 0)
    answers("get", run(server, "item", "get", "text"), 0, "some text")
    answers("an empty item is none that is missing", run(server, "item", "set", "empty", ""), 0)
    answers("get, empty", run(server, "item", "get", "empty"), 0, '"value":""')
    answers("add, existing: a lock", run(server, "lock", "acquire", "l", "--ttl", "1m"), 0)
    answers("add, existing: held", run(server, "lock", "acquire", "l", "--ttl", "1m"), 75, '"acquired":false')
    answers("incr of text", run(server, "counter", "incr", "--key", "text"), 65, "not a counter")
    answers("text is left as it was", run(server, "item", "get", "text"), 0, "some text")
    answers("incr, missing", run(server, "counter", "incr", "c"), 0, '"created":true')
    answers("incr", run(server, "counter", "incr", "c", str(1 << 40)), 0, f'"value":{(1 << 40) + 1}')
    answers("decr", run(server, "counter", "decr", "c", str(1 << 50)), 0, '"value":0')
    answers("decr, missing", run(server, "counter", "decr", "nothing"), 1)
    answers("append, missing and existing", run(server, "array", "add", "a", "one"), 0)
    answers("append", run(server, "array", "add", "a", "two"), 0, '"adds":1')
    answers("cas", run(server, "array", "change", "a", "--remove", "one"), 0)
    answers("after a cas", run(server, "array", "fetch", "a"), 0, '["two"]')
    answers("delete, missing", run(server, "item", "remove", "nothing"), 1)
    answers("too large", run(server, "item", "set", "large", "-", given="x" * (3 << 20)), 76, "larger than the server accepts")
    answers("stats and version", run(server, "servers"), 0, '"version":"1.6.', '"up":true')
    answers("what lists keys is refused by name", run(server, "item", "list"), 76, "binary protocol")


def without_cas(directory):
    path = os.path.join(directory, "without-cas")
    with running(path, "-B", "binary", "-C"):
        answers("a lock on -C", run(f"unix:{path}", "lock", "run", "l", "--", "true"), 76, "does not support cas")
        answers("a counter on -C", run(f"unix:{path}", "counter", "incr", "c"), 0)


def without_memory(directory):
    path = os.path.join(directory, "without-memory")
    with running(path, "-B", "binary", "-M", "-m", "8"):
        for number in range(200):
            done = run(f"unix:{path}", "item", "set", f"k{number}", "-", given="x" * 60_000)
            if done.returncode != 0:
                break
        answers("out of memory", done, 76, "out of memory")
        answers("a full server speaks the binary protocol", run(f"unix:{path}", "item", "show", "k0"), 0, '"found":true')
        answers("the protocol has its name", run(f"unix:{path}", "-v", "item", "show", "k0"), 0, ", binary")
        answers("its connections cannot be listed", run(f"unix:{path}", "servers", "--clients"), 76, "the binary protocol lists no connections")


class Counting(Stub):
    """A server of the binary protocol that answers the two questions of a connection, and to the rest as told. Counts what came."""

    def __init__(self, rest):
        self.rest, self.seen = rest, []
        super().__init__(self.talk)
        self.address = f"127.0.0.1:{self.port}"

    def talk(self, connection):
        with connection.makefile("rb") as requests:
            while len(header := requests.read(24)) == 24:
                _, opcode, key_size, extras, _, _, size, opaque, _ = struct.unpack(">BBHBBHIIQ", header)
                body = requests.read(size)
                key = body[extras:extras + key_size]
                status, value = (0, b"1.6.18") if opcode == 0x0b else (5, b"") if key == b"mcds:what-server-is-this" else (None, b"")
                if status is None:
                    self.seen.append((opcode, key))
                    status = self.rest(opcode, connection)
                    if status is None:
                        return
                connection.sendall(struct.pack(">BBHBBHIIQ", 0x81, opcode, 0, 0, 0, status, len(value), opaque, 0) + value)


def sent_once():
    """The connection ends, nothing comes, garbage comes, or a word that the library does not know, or aborts at: exit 80, sent once."""
    ends = {
        "closes": lambda opcode, connection: None,
        "is silent": lambda opcode, connection: time.sleep(20),
        "answers garbage": lambda opcode, connection: connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n"),
        "answers a status that is none": lambda opcode, connection: 0x99,
    }
    for what, rest in ends.items():
        with Counting(rest) as server:
            done = run(server.address, "item", "set", "k", "v", timeout="1s")
            sets = [key for opcode, key in server.seen if opcode in (0x01, 0x02, 0x03, 0x11, 0x12, 0x13)]  # set, add, replace
            check(done.returncode == 80 and "may have been applied" in done.stderr, f"a server that {what}: {done}")
            check(sets == [b"k"], f"a server that {what} was sent {server.seen}")
    with Counting(lambda opcode, connection: 0x01 if opcode in (0x00, 0x0c) else 0x20) as server:
        done = run(server.address, "counter", "incr", "c")
        check(done.returncode == 77 and len(server.seen) <= 2, f"denied in the middle: {done}, {server.seen}")
    for status, code in ((0x82, 76), (0x03, 76)):
        with Counting(lambda opcode, connection: status) as server:
            answers(f"status {status:#x}", run(server.address, "item", "set", "k", "v"), code)


def unreachable():
    answers("nobody listens", run("127.0.0.1:1", "counter", "incr", "c"), 69)
    answers("a read where nobody listens", run("127.0.0.1:1", "counter", "get", "c"), 69)


def stopped(server, process):
    """It costs a batch two timeouts, not one for each line, which would end none in time; if it goes on in time, no line fails."""
    lines = "".join(f"n{number}\n" for number in range(200))
    process.send_signal(signal.SIGSTOP)
    try:
        for words in (["table", "add", "t", "-"], ["counter", "incr", "-"], ["item", "get", "-"]):
            answers(f"a stopped server: {words}", run(server, *words, given=lines, timeout="1s"), 69, "TIMEOUT")
        threading.Timer(3, process.send_signal, [signal.SIGCONT]).start()
        answers("a server that goes on", run(server, "counter", "incr", "-", given=lines, timeout="2s"), 0)
    finally:
        process.send_signal(signal.SIGCONT)


def logins(directory):
    """-S with a login of its own."""
    config = os.path.join(directory, "sasl")
    os.mkdir(config)
    with open(f"{config}/memcached.conf", "w", encoding="utf-8") as file:
        file.write(f"mech_list: plain\nsasldb_path: {config}/db\npwcheck_method: auxprop\nauxprop_plugin: sasldb\n")
    subprocess.run(["/usr/sbin/saslpasswd2", "-p", "-c", "-a", "memcached", "-f", f"{config}/db", "-u", socket.gethostname(), "app"],
                   input=PASSWORD.encode(), env=os.environ | {"SASL_CONF_PATH": config}, check=True)
    host, ports = own_address(), (11311, 11312)
    environment = os.environ | {"SASL_CONF_PATH": config}
    command = ["memcached", "-S", "-l", host, "-U", "0"] + (["-u", "root"] if os.getuid() == 0 else [])
    processes = [subprocess.Popen([*command, "-p", str(port)], env=environment, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
                 for port in ports]
    servers = [f"{host}:{port}" for port in ports]
    server = servers[0]
    login = {"MCDS_USER": "app", "MCDS_PASSWORD": PASSWORD}
    try:
        for port in ports:
            for _ in range(100):
                with socket.socket() as probe:
                    if probe.connect_ex((host, port)) == 0:
                        break
                time.sleep(0.05)
        for words in (["item", "get", "k"], ["counter", "get", "c"], ["counter", "incr", "c"], ["item", "set", "k", "v"], ["lock", "run", "l", "--", "true"]):
            answers(f"no login: {words}", run(server, *words), 77, "SASL login")
            answers(f"a wrong one: {words}", run(server, "--auth", "sasl", *words, MCDS_USER="app", MCDS_PASSWORD="wrong"), 77, "rejected")
        answers("with a login", run(server, "--auth", "sasl", "counter", "incr", "c", **login), 0, '"value":1')
        answers("with a login, missing", run(server, "--auth", "sasl", "item", "get", "k", **login), 1)
        answers("nothing was applied without it", run(server, "--auth", "sasl", "counter", "get", "c", **login), 0, '"value":1')
        answers("a login of another form", run(server, "--auth", "ascii", "counter", "get", "c", **login), 78, "--auth sasl")
        text = subprocess.run([MCDS, "-s", server, "--auth", "sasl", "counter", "get", "c"], env=CLEAN | login, capture_output=True, text=True, check=False)
        answers("SASL in text", text, 78, "--protocol binary")
        text = subprocess.run([MCDS, "-s", server, "counter", "get", "c"], env=CLEAN, capture_output=True, text=True, check=False)
        answers("in text it is told what to give", text, 77, "--protocol binary", "--auth sasl")
        os.environ.update(login)
        conforms("-S", servers, "--auth", "sasl")
    finally:
        for name in login:
            os.environ.pop(name, None)
        for process in processes:
            process.kill()
            process.wait()


class LoggedIn(Suite):
    """Suite takes no logins from the environment."""

    def __init__(self, *words):
        super().__init__(*words)
        self.environment.update({name: os.environ[name] for name in ("MCDS_USER", "MCDS_PASSWORD") if name in os.environ})


def conforms(name, servers, *options):
    """With one copy on the first, with two on both."""
    for copies in (1, 2):
        suite = LoggedIn(MCDS, ",".join(servers[:copies]), ["--protocol", "binary", *options], copies).all()
        what = f"{name} {options}, {copies} copies"
        check(not suite.faults, f"{what}: {suite.line()}\n  " + "\n  ".join(suite.faults))
        check(set(suite.refused) == set(refused_by(name, copies)), f"{what} refuses:\n  " + "\n  ".join(suite.refused))


def main():
    with tempfile.TemporaryDirectory() as directory:
        running = []
        try:
            for number in range(2):
                path = os.path.join(directory, f"binary{number}")
                running.append(start_memcached(path, "-B", "binary"))
                listens(path)
            servers = [f"unix:{directory}/binary{number}" for number in range(2)]
            words_of_the_table(servers[0])
            conforms("-B binary", servers)
            text = subprocess.run([MCDS, "-s", servers[0], "counter", "get", "c"], env=CLEAN, capture_output=True, text=True, check=False)
            answers("in text it is told what to give", text, 76, "--protocol binary")
            without_cas(directory)
            without_memory(directory)
            sent_once()
            unreachable()
            stopped(servers[0], running[0])
            logins(directory)
        finally:
            for process in running:
                process.kill()
                process.wait()
    finish()


main()
