#!/usr/bin/env python3
"""--servers-from where it asks the network: ElastiCache endpoints and name servers, made up here.

Usage: servers_from_test.py BUILD_DIR
"""
import json
import os
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from checks import check, finish
from program import clean_environment
from stub import Stub

A, CNAME, AAAA, SRV = 1, 5, 28, 33
NXDOMAIN = 3
mcds = os.path.join(os.path.abspath(sys.argv[1]), "tools", "mcds")
SOURCES = os.path.dirname(os.path.abspath(__file__))


def run(*arguments, **environment):
    return subprocess.run([mcds, *arguments], env=clean_environment(**environment), capture_output=True, text=True, timeout=60, check=False,
                          stdin=subprocess.DEVNULL)


def servers_of(source, **environment):
    """The pool as mcds sees it: it shows every server it cannot reach, too."""
    done = run("--servers-from", source, "--connect-timeout", "300ms", "servers", **environment)
    return [json.loads(line)["server"] for line in done.stdout.splitlines()]


def fails(what, done, status, *words):
    check(done.returncode == status and done.stdout == "", f"{what}: ended with {done.returncode}, printed {done.stdout!r}")
    check(all(word in done.stderr for word in words), f"{what}: said {done.stderr!r}")


class Endpoint(Stub):
    """Answers every connection with `pieces`, one by one, after a request came; then closes, or waits if told so."""

    def __init__(self, *pieces, silent=False):
        self.pieces, self.silent, self.asked = pieces, silent, []
        super().__init__(self.talk)

    def talk(self, connection):
        self.asked.append(connection.recv(1000))
        for piece in self.pieces:
            connection.sendall(piece)
            time.sleep(0.01)
        while self.silent and connection.recv(1000):
            pass


def config(text):
    payload = text.encode()
    return b"CONFIG cluster 0 %d\r\n%b\r\nEND\r\n" % (len(payload), payload)


def older_clusters():
    """Before 1.4.14 the list is an item."""
    payload = b"12\ncache-1.example|10.0.0.1|11211 cache-2.example|10.0.0.2|11222\n"
    answers = {b"config get cluster\r\n": b"ERROR\r\n",
               b"get AmazonElastiCache:cluster\r\n": b"VALUE AmazonElastiCache:cluster 0 %d\r\n%b\r\nEND\r\n" % (len(payload), payload)}

    def serve(connection):
        with connection.makefile("rb") as requests:
            while line := requests.readline():
                connection.sendall(answers[line])

    with Stub(serve) as endpoint:
        servers = servers_of(f"elasticache:127.0.0.1:{endpoint.port}")
        check(servers == ["cache-1.example:11211", "cache-2.example:11222"], f"elasticache before 1.4.14: {servers}")
        answers[b"get AmazonElastiCache:cluster\r\n"] = b"END\r\n"
        fails("memcached as an endpoint", run("--servers-from", f"elasticache:127.0.0.1:{endpoint.port}", "where", "k"), 76, "ElastiCache")


def elasticache():
    answer = config("12\ncache-1.example|10.0.0.1|11211 cache-2.example|10.0.0.2|11222\n")
    for what, pieces in (("at once", [answer]), ("byte by byte", [answer[i:i + 1] for i in range(len(answer))])):
        with Endpoint(*pieces, silent=True) as endpoint:
            done = run("--timeout", "30s", "--servers-from", f"elasticache:127.0.0.1:{endpoint.port}", "-o", "value", "where", *"abcdefgh")
            check(set(done.stdout.split()) == {"cache-1.example:11211", "cache-2.example:11222"}, f"elasticache {what}: {done}")
            check(endpoint.asked == [b"config get cluster\r\n"], f"elasticache {what}: asked {endpoint.asked}")
    with Endpoint(config("3\nlocalhost||11211\n"), silent=True) as endpoint:
        done = run("--servers-from", f"elasticache:localhost:{endpoint.port}", "-o", "value", "where", "k")
        check(done.stdout == "localhost:11211\n", f"elasticache: an entry without an address: {done}")
    older_clusters()
    refusals = {
        "no endpoint": [b"ERROR\r\n"],
        "another answer": [b"CONFIG host 0 5\r\nhello\r\nEND\r\n"],
        "a length that is none": [b"CONFIG cluster 0 ten\r\n0123456789\r\nEND\r\n"],
        "a length too long": [b"CONFIG cluster 0 4000000000\r\n12\nh||1\n\r\nEND\r\n"],
    }
    for what, pieces in refusals.items():
        with Endpoint(*pieces, silent=True) as endpoint:
            fails(f"elasticache: {what}", run("--servers-from", f"elasticache:127.0.0.1:{endpoint.port}", "where", "k"), 76,
                  "ElastiCache")
    for what, text in (("no entry", "12\n\n"), ("half an entry", "12\nh|10.0.0.1\n"), ("port 0", "12\nh|10.0.0.1|0\n")):
        with Endpoint(config(text), silent=True) as endpoint:
            done = run("--servers-from", f"elasticache:127.0.0.1:{endpoint.port}", "where", "k")
            check(done.returncode == 76 and done.stdout == "", f"elasticache: {what}: {done}")
    # What an endpoint says is no server list: nothing of its grammar is taken.
    for entry in ("unix:/PATH|ip|1", "a:1,b|ip|1", "name=a|ip|1", "a/?9|ip|1", "tls://a|ip|1", "a\x1b[2J|ip|1"):
        with Endpoint(config(f"12\n{entry}\n"), silent=True) as endpoint:
            done = run("--servers-from", f"elasticache:127.0.0.1:{endpoint.port}", "where", "k")
            fails(f"elasticache: {entry}", done, 76, "the entry", entry[:1])
    for what, endpoint in (("closes", Endpoint(b"CONFIG clu")), ("stays silent", Endpoint(silent=True)),
                           ("stops in the middle", Endpoint(answer[:30], silent=True))):
        with endpoint:
            begun = time.monotonic()
            done = run("--servers-from", f"elasticache:127.0.0.1:{endpoint.port}", "--timeout", "300ms", "where", "k")
            fails(f"elasticache: an endpoint that {what}", done, 69, "does not answer")
            check(time.monotonic() - begun < 20, f"elasticache: an endpoint that {what} is waited for without end")
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        fails("elasticache: nobody there", run("--servers-from", f"elasticache:127.0.0.1:{unused.getsockname()[1]}", "where", "k"),
              69, "does not answer")


def logins_in_lists():
    """They go to the servers of their own list, and no one else's."""
    for kind, variable in (("dsn", "memcached://app:s%40cret@127.0.0.1:{}"), ("dalli", "memcached://app:s%40cret@127.0.0.1:{}")):
        with Endpoint(b"ERROR\r\n") as named, Endpoint(b"ERROR\r\n") as other:
            environment = {"THEIR": variable.format(named.port)}
            run("--servers-from", f"{kind}:THEIR", "counter", "get", "x", **environment)
            run("-s", f"127.0.0.1:{other.port}", "counter", "get", "x", **environment)
            check(any(b"app s@cret" in asked for asked in named.asked), f"{kind}: its login is not sent: {named.asked}")
            check(other.asked and not any(b"cret" in asked for asked in other.asked), f"{kind}: another list has it: {other.asked}")
            shown = run("--servers-from", f"{kind}:THEIR", "-v", "servers", **environment)
            check("cret" not in shown.stdout + shown.stderr, f"{kind}: the password is shown: {shown}")
    with tempfile.TemporaryDirectory() as directory, Endpoint(b"ERROR\r\n") as endpoint:
        with open(f"{directory}/nova.conf", "w", encoding="utf-8") as file:
            file.write(f"[cache]\nmemcache_servers = 127.0.0.1:{endpoint.port}\nmemcache_sasl_enabled = true\n"
                       "memcache_username = app\nmemcache_password = s3cret\n")
        run("--servers-from", f"oslo:{directory}/nova.conf", "counter", "get", "x")
        check(any(b"app s3cret" in asked for asked in endpoint.asked), f"oslo: its login is not sent: {endpoint.asked}")


def labels(name):
    return b"".join(bytes([len(label)]) + label.encode() for label in name.split(".") if label) + b"\0"


def address(text):
    return (AAAA, socket.inet_pton(socket.AF_INET6, text)) if ":" in text else (A, socket.inet_aton(text))


def service(priority, weight, port, target):
    return SRV, struct.pack("!HHH", priority, weight, port) + labels(target)


class NameServer:
    """Answers from a table: {name: [(type, data)…]}; a name it does not know does not exist."""

    def __init__(self, table):
        self.table = table
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self):
        while True:
            try:
                question, sender = self.socket.recvfrom(4096)
            except OSError:
                return
            if len(question) > 12:
                self.socket.sendto(self.answer(question), sender)

    def answer(self, question):
        name, at = [], 12
        while question[at]:
            name.append(question[at + 1:at + 1 + question[at]].decode())
            at += 1 + question[at]
        kind = struct.unpack("!H", question[at + 1:at + 3])[0]
        records = self.table.get(".".join(name).lower())
        chosen = [record for record in records or () if record[0] in (kind, CNAME)]
        body = b"".join(b"\xc0\x0c" + struct.pack("!HHIH", kind, 1, 60, len(data)) + data for kind, data in chosen)
        flags = 0x8580 | (NXDOMAIN if records is None else 0)
        return question[:2] + struct.pack("!HHHHH", flags, 1, len(chosen), 0, 0) + question[12:at + 5] + body

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()


def preloaded(directory, name_server):
    library = os.path.join(directory, "nameserver.so")
    if not os.path.exists(library):
        subprocess.run(["cc", "-shared", "-fPIC", "-o", library, os.path.join(SOURCES, "nameserver.c")], check=True)
    return {"LD_PRELOAD": library, "NAMESERVER_PORT": str(name_server.port), "LOCALDOMAIN": "", "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0"}


TABLE = {
    "cache.test": [address(text) for text in ("10.0.0.10", "10.0.0.9", "10.0.0.10", "9.0.0.1")],
    "six.test": [address("fd00::2"), address("fd00::1")],
    "empty.test": [],
    "_mc._tcp.test": [service(20, 1, 11299, "spare.test"), service(10, 5, 11212, "b.test"), service(10, 1, 11211, "a.test"),
                      service(10, 3, 11210, "b.test")],
    "_even._tcp.test": [service(0, 33, 11211, name) for name in ("c.test", "a.test", "b.test")],
    "_zero._tcp.test": [service(0, 0, 11211, "b.test"), service(0, 0, 11211, "a.test")],
    "_some._tcp.test": [service(0, 0, 11211, "b.test"), service(0, 7, 11211, "a.test")],
    "_comma._tcp.test": [service(0, 0, 11211, "a:1,b")],
    "_path._tcp.test": [service(0, 0, 11211, "unix:/run/m")],
    "_weight._tcp.test": [service(0, 0, 11211, "name=a/?7")],
    "_none._tcp.test": [service(0, 0, 0, "")],
}


def dns(environment):
    check(servers_of("dns:127.0.0.1") == ["127.0.0.1:11211"], "dns: an address without port")
    check(servers_of("dns:[::1]:22122") == ["[::1]:22122"], "dns: an IPv6 address with port")
    check("127.0.0.1:22122" in servers_of("dns:localhost:22122"), "dns: localhost")
    found = servers_of("dns:cache.test:11311", **environment)
    check(found == ["9.0.0.1:11311", "10.0.0.9:11311", "10.0.0.10:11311"], f"dns: addresses, each once, in numerical order: {found}")
    found = servers_of("dns:six.test", **environment)
    check(found == ["[fd00::1]:11211", "[fd00::2]:11211"], f"dns: IPv6 addresses: {found}")
    for name in ("nowhere.test", "empty.test"):
        fails(f"dns:{name}", run("--servers-from", f"dns:{name}", "where", "k", **environment), 69, name)
    for name in ("dns:a:0", "dns:a:b", "dns:", "dns:a b"):
        check(run("--servers-from", name, "where", "k", **environment).returncode == 64, f"{name} is no usage error")


def dns_services(environment):
    pools = {
        "_mc._tcp.test": [("a.test:11211", 1), ("b.test:11210", 3), ("b.test:11212", 5)],
        "_even._tcp.test": [("a.test:11211", 1), ("b.test:11211", 1), ("c.test:11211", 1)],
        "_zero._tcp.test": [("a.test:11211", 1), ("b.test:11211", 1)],
        "_some._tcp.test": [("a.test:11211", 7), ("b.test:11211", 1)],
    }
    keys = [f"key{i}" for i in range(200)]
    for name, pool in pools.items():
        listed = ",".join(f"{server}/?{weight}" for server, weight in pool)
        expected = run("-s", listed, "where", *keys)
        found = run("--servers-from", f"dnssrv:{name}", "where", *keys, **environment)
        check(found.stdout == expected.stdout and found.returncode == 0, f"dnssrv:{name} is not {listed}: {found.stderr}{found.stdout[:200]}")
    for name in ("_comma._tcp.test", "_path._tcp.test", "_weight._tcp.test"):
        fails(f"dnssrv:{name}", run("--servers-from", f"dnssrv:{name}", "where", "k", **environment), 76, "not a host name")
    for name in ("_none._tcp.test", "_nowhere._tcp.test", "empty.test", "cache.test"):
        fails(f"dnssrv:{name}", run("--servers-from", f"dnssrv:{name}", "where", "k", **environment), 69, name)


def main():
    elasticache()
    logins_in_lists()
    with tempfile.TemporaryDirectory(prefix="mcds-servers-from-") as directory, NameServer(TABLE) as name_server:
        environment = preloaded(directory, name_server)
        dns(environment)
        dns_services(environment)
    finish()


if __name__ == "__main__":
    main()
