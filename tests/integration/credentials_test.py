#!/usr/bin/env python3
"""Who gets which login, and how: every way to name servers, times every credential. What is sent is recorded by servers made
up here, in a network of this process's own, where 10.0.0.x are machines elsewhere.

Usage: credentials_test.py BUILD_DIR
"""
import json
import os
import ssl
import subprocess
import sys
import tempfile
import threading

for room in ("../support", "."):
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), room))
import private_network
from certificates import Authority
from checks import check, finish
from program import clean_environment
from servers_from_test import NameServer, preloaded, service
from stub import Stub

mcds = os.path.join(os.path.abspath(sys.argv[1]), "tools", "mcds")
POOL, CALLER = "pool-secret", "caller-secret"  # passwords: of the pool in the config, of options and environment
FAR, NEAR = "10.0.0.1", "127.0.0.1"


class Recorder(Stub):
    """A memcached that wants the login it is sent, plain or with TLS; `seen` has everything it was sent."""

    def __init__(self, host=NEAR, context=None, path=None):
        self.context, self.seen, self.certificates = context, b"", []
        self.lock = threading.Lock()
        super().__init__(self.talk, path, host)

    def talk(self, connection):
        if self.context:
            connection = self.context.wrap_socket(connection, server_side=True)
            self.certificates.append(connection.getpeercert())
        logged_in, skips, rest = False, False, b""
        while True:
            more = connection.recv(65536)
            if not more:
                return
            with self.lock:
                self.seen += more
            rest += more
            while b"\r\n" in rest:
                line, rest = rest.split(b"\r\n", 1)
                if skips:
                    skips, logged_in = False, True
                    connection.sendall(b"STORED\r\n")
                    continue
                word = line.split(b" ")[0]
                if word == b"set":
                    skips = True
                elif word == b"get" and not logged_in and line.startswith(b"get mcds:what"):
                    connection.sendall(b"ERROR who are you\r\n")
                    return
                else:
                    connection.sendall({b"mn": b"MN\r\n", b"version": b"VERSION 1.6.18\r\n", b"mg": b"EN\r\n"}.get(word, b"END\r\n"))

    def secrets(self):
        """Which passwords it has seen."""
        return {name for name, secret in (("pool", POOL), ("caller", CALLER)) if secret.encode() in self.seen}


def run(*arguments, **environment):
    return subprocess.run([mcds, *arguments], env=clean_environment(**{"HOME": "/nowhere", **environment}), capture_output=True, text=True,
                          timeout=60, check=False, stdin=subprocess.DEVNULL)


class World:
    """Recorders, a config whose default pool is another service's, and everything that names a server."""

    def __init__(self, directory):
        self.directory, self.ca = directory, Authority(directory, "ca")
        certificate = self.ca.certificate("server", f"IP:{FAR},IP:{NEAR},DNS:cache.test")
        self.client = self.ca.certificate("client", "DNS:client")
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(*certificate)
        self.context.load_verify_locations(self.ca.file)
        self.context.verify_mode = ssl.CERT_OPTIONAL
        self.names, self.endpoints = NameServer({}), []
        self.pool_secret, self.caller_secret = self.file("pool", POOL, 0o600), self.file("caller", CALLER, 0o600)

    def file(self, name, text, mode=0o644):
        path = os.path.join(self.directory, name)
        with open(path, "w", encoding="utf-8") as out:
            out.write(text)
        os.chmod(path, mode)
        return path

    def recorder(self, how):
        host = FAR if how.startswith("far") else NEAR
        path = os.path.join(self.directory, "recorder.sock") if how == "unix" else None
        if path and os.path.exists(path):
            os.remove(path)
        return Recorder(host, self.context if how.endswith("tls") else None, path)

    def endpoint(self, text, tls):
        """An ElastiCache endpoint that says `text`, once."""
        def serve(connection):
            if tls:
                connection = self.context.wrap_socket(connection, server_side=True)
            connection.recv(1000)
            connection.sendall(b"CONFIG cluster 0 %d\r\n%b\r\nEND\r\n" % (len(text), text.encode()))
            connection.recv(1)
        self.endpoints.append(Stub(serve))

    def address(self, recorder, how):
        if how == "unix":
            return "unix:" + os.path.join(self.directory, "recorder.sock")
        return f"{FAR if how.startswith('far') else NEAR}:{recorder.port}"


# Every way to name a server: the words for the command line, the config and the environment. `tls`: over TLS.
def option(world, address, tls):
    return ["-s", ("tls://" if tls else "") + address], "", {}


def variable(name):
    return lambda world, address, tls: ([], "", {name: ("tls://" if tls else "") + address})


def in_pool(settings, words, environment):
    def way(world, address, tls):
        return words, f"{settings}[pool p]\nservers = {'tls://' if tls else ''}{address}\n", environment
    return way


def top_level(world, address, tls):
    return [], f"servers = {'tls://' if tls else ''}{address}\n", {}


def source_of(world, kind, address, tls):
    host, port = address.rsplit(":", 1)
    scheme = "tls://" if tls else ""
    if kind == "file":
        return "file:" + world.file("list", scheme + address + "\n"), {}
    if kind == "nutcracker":
        return "nutcracker:" + world.file("n.yml", f'p:\n  servers: [ "{address}:1" ]\n'), {}
    if kind == "mcrouter":
        route = '"route":"PoolRoute|A"'
        return "mcrouter:" + world.file("m.json", f'{{"pools":{{"A":{{"servers":["{address}:ascii:{"ssl" if tls else "plain"}"]}}}},{route}}}'), {}
    if kind == "mcrouter pool":
        pool = f'{{"servers":["{address}"],"security_mech":"{"tls" if tls else "plain"}"}}'
        return "mcrouter:" + world.file("m.json", f'{{"pools":{{"A":{pool}}},"route":"PoolRoute|A"}}'), {}
    if kind == "php-ini":
        return "php-ini:" + world.file("php.ini", f'session.save_handler=memcache\nsession.save_path="{"tls" if tls else "tcp"}://{address}"\n'), {}
    if kind == "django":
        cache = {"BACKEND": "django.core.cache.backends.memcached.PyMemcacheCache", "LOCATION": address}
        return "django:" + world.file("caches.json", json.dumps({"default": cache})), {}
    if kind == "oslo":
        return "oslo:" + world.file("nova.conf", f"[cache]\nmemcache_servers = {address}\ntls_enabled = {tls}\n"), {}
    if kind == "dsn":
        return "dsn:THEIR_DSN", {"THEIR_DSN": f"memcached://{address}"}
    if kind == "dalli":
        return "dalli:THEIR_LIST", {"THEIR_LIST": address}
    if kind == "env":
        return "env:THEIR", {"THEIR_SERVERS": scheme + address}
    if kind == "dns":
        return f"dns:{scheme}{address}", {}
    if kind == "dnssrv":
        world.names.table["_mc._tcp.test"] = [service(0, 0, int(port), host)]
        return f"dnssrv:{scheme}_mc._tcp.test", preloaded(world.directory, world.names)
    world.endpoint(f"1\n{host}|{host}|{port}\n", tls)
    return f"elasticache:{scheme}{NEAR}:{world.endpoints[-1].port}", {}


def from_source(kind, pooled=False, plain_login=False):
    def way(world, address, tls):
        source, environment = source_of(world, kind, address, tls)
        words = ["--tls"] if tls and kind in WITHOUT_TLS else []
        if not pooled:
            return ["--servers-from", source, *words], "", environment
        settings = f"[pool p]\nservers_from = {source}\n" + ("plain_login = yes\n" if plain_login else "")
        return ["-P", "p", *words], settings, environment
    return way


NAMED = ["file", "nutcracker", "mcrouter", "mcrouter pool", "php-ini", "env", "oslo", "django", "dsn", "dalli"]
WITHOUT_TLS = ["django", "dsn", "dalli"]  # in what they are written in
DISCOVERED = ["dns", "dnssrv", "elasticache"]
SENT, WITHHELD, NOTHING = "sent", "withheld", "nothing"
# way: (its words, what happens without TLS on another machine with: the login of options, of the environment, of the pool
# that the list is in). Whatever is withheld there is sent over TLS.
WAYS = {
    "-s": (option, SENT, WITHHELD, None),
    "MCDS_SERVERS": (variable("MCDS_SERVERS"), WITHHELD, SENT, None),
    "MEMCACHED_SERVERS": (variable("MEMCACHED_SERVERS"), WITHHELD, SENT, None),
    "-P": (in_pool("", ["-P", "p"], {}), WITHHELD, WITHHELD, SENT),
    "MCDS_POOL": (in_pool("", [], {"MCDS_POOL": "p"}), WITHHELD, WITHHELD, SENT),
    "pool =": (in_pool("pool = p\n", [], {}), WITHHELD, WITHHELD, SENT),
    "servers =": (top_level, WITHHELD, WITHHELD, SENT),
    **{kind: (from_source(kind), SENT, WITHHELD, None) for kind in NAMED},
    **{kind: (from_source(kind), WITHHELD, WITHHELD, None) for kind in DISCOVERED},
    **{f"{kind} in a pool": (from_source(kind, True), WITHHELD, WITHHELD, SENT) for kind in NAMED},
    **{f"{kind} in a pool": (from_source(kind, True), WITHHELD, WITHHELD, WITHHELD) for kind in DISCOVERED},
    **{f"{kind} with plain_login": (from_source(kind, True, True), SENT, SENT, SENT) for kind in DISCOVERED},
}


def login_of(world, credential, config):
    """The words, the config and the environment that give a login."""
    own = f"user = app\npassword_file = {world.pool_secret}\n"
    if credential == "options":
        return ["--user", "app", "--password-file", world.caller_secret], config, {}
    if credential == "environment":
        return [], config, {"MCDS_USER": "app", "MCDS_PASSWORD": CALLER}
    if credential == "own pool":
        return [], config + own, {}
    # The default pool, unless the way names another.
    managed = f"[pool managed]\nservers = tls://managed.example\ntls_name = managed.example\n{own}"
    return [], ("" if config.startswith("pool =") else "pool = managed\n") + config + managed, {}


def expected_of(way, how, credential):
    _, options, environment, own = WAYS[way]
    if credential == "another pool":
        return None if way == "servers =" else NOTHING  # there the other pool's list would be chosen
    plain = {"options": options, "environment": environment, "own pool": own}[credential]
    if plain is None or how.endswith("tls"):
        return plain and SENT
    discovered = any(way.startswith(kind) for kind in DISCOVERED)
    return plain if how == "far" or discovered else SENT


def row(world, way, how, credential, form="ascii"):
    expected = expected_of(way, how, credential)
    if expected is None:
        return
    with world.recorder(how) as recorder:
        words, config, environment = WAYS[way][0](world, world.address(recorder, how), how.endswith("tls"))
        more, config, login = login_of(world, credential, config)
        path = world.file("mcds.conf", (f"auth = {form}\n" if credential == "own pool" and form != "ascii" else "") + config)
        if credential != "own pool" and form != "ascii":
            more = [*more, "--auth", form]
        done = run("--config", path, *words, *more, "--tls-ca", world.ca.file, "--timeout", "20s", "--connect-timeout", "20s",
                   "counter", "get", "k", **environment, **login)
        what = f"{way}, {how}, {credential}, {form}: {done.returncode} {done.stdout}{done.stderr} {recorder.seen!r}"
        secret = {"own pool": {"pool"}, "another pool": set()}.get(credential, {"caller"})
        check(recorder.secrets() == (secret if expected == SENT else set()), what)
        check(done.returncode == (77 if expected == WITHHELD else 1), what)
        if expected == WITHHELD:
            check(not recorder.seen and "without TLS" in done.stderr and "plain_login" in done.stderr, what)
        check(POOL not in done.stderr and CALLER not in done.stderr, what)
        shown(what, run("--config", path, *words, *more, "--tls-ca", world.ca.file, "config", **environment, **login), expected, how)


def shown(what, done, expected, how):
    """mcds config says the same of each server, unless the network would have to be asked for it."""
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    for line in (line for line in lines if "server" in line):
        check(line["tls"] == how.endswith("tls"), f"config: {what}: {line}")
        check((line["login"] == "app") == (expected == SENT), f"config: {what}: {line}")
        if expected == SENT:
            check(line["login_in_clear"] == (how in ("far", "near")), f"config: {what}: {line}")
        check(("error" in line) == (expected == WITHHELD), f"config: {what}: {line}")
    check(not any(secret in done.stdout + done.stderr for secret in (POOL, CALLER)), f"config: {what}: {done.stdout}")


def a_login_goes_only_where_its_list_says(world):
    for way in WAYS:
        for credential in ("options", "environment", "own pool", "another pool"):
            for how in ("far", "far tls", "near"):
                if how.endswith("tls") and way.startswith("nutcracker"):
                    continue  # it has no TLS
                row(world, way, how, credential)
            if way in ("-s", "-P", "pool =", "env", "dns"):
                row(world, way, "far", credential, "user-key")
    for way in ("-s", "MCDS_SERVERS", "-P", "pool =", "servers =", "file"):
        for credential in ("options", "environment", "own pool", "another pool"):
            row(world, way, "unix", credential)


def a_login_of_a_tls_list_goes_to_no_other_list_in_clear(world):
    """The main list is reached with TLS: what else the command line names gets the login over TLS, or not at all."""
    login = ["--user", "app", "--password-file", world.caller_secret]
    of_environment = {"MCDS_USER": "app", "MCDS_PASSWORD": CALLER}
    for main_by in ("-s", "MCDS_SERVERS", "-P"):
        for credential in ("options", "environment", "own pool"):
            if credential == "own pool" and main_by != "-P":
                continue
            for how in ("far", "near", "far tls"):
                for words in (["ring", "move", "--to", "@", "--dry-run"], ["ring", "diff", "--to", "@", "--live"],
                              ["ring", "move", "--to-servers-from", "file:@", "--dry-run"],
                              ["where", "--prune", "--live", "--moved-from", "@", "--dry-run"]):
                    with world.recorder("near tls") as main_list, world.recorder(how) as other:
                        main = f"tls://{NEAR}:{main_list.port}"
                        address = ("tls://" if how.endswith("tls") else "") + world.address(other, how)
                        if words[-2].startswith("file:"):
                            address = world.file("other", address + "\n")
                        config, environment, named = "", {}, []
                        if main_by == "-s":
                            named = ["-s", main]
                        elif main_by == "MCDS_SERVERS":
                            environment = {"MCDS_SERVERS": main}
                        else:
                            named, config = ["-P", "p"], f"[pool p]\nservers = {main}\n"
                            if credential == "own pool":
                                config += f"user = app\npassword_file = {world.pool_secret}\n"
                        named += login if credential == "options" else []
                        environment |= of_environment if credential == "environment" else {}
                        done = run("--config", world.file("mcds.conf", config), *named, "--tls-ca", world.ca.file, "--connect-timeout", "20s",
                                   *(word.replace("@", address) for word in words), **environment)
                        what = f"main by {main_by}, {credential}, {how}, {words}: {done.returncode} {done.stderr} {other.seen!r}"
                        check(bool(main_list.secrets()), f"the main list got no login: {what}")
                        check(how.endswith("tls") or not other.secrets(), f"in clear: {what}")


def a_certificate_goes_only_where_its_list_says(world):
    ours = f"tls_cert = {world.client[0]}\ntls_key = {world.client[1]}\n"
    for what, words, config, shows in (
            ("of options", ["-s", "@", "--tls-cert", world.client[0], "--tls-key", world.client[1]], "", True),
            ("of another pool", ["-s", "@"], f"pool = managed\n[pool managed]\nservers = tls://managed.example\n{ours}", False),
            ("of the pool", ["-P", "p"], f"[pool p]\nservers = @\n{ours}", True),
            ("of the keys before any section, with a list there", ["-P", "p"], f"servers = a\n{ours}[pool p]\nservers = @\n", False),
            ("of the keys before any section", ["-P", "p"], f"{ours}[pool p]\nservers = @\n", True),
            ("of the keys before any section, and options", ["-s", "@"], ours, False)):
        with world.recorder("far tls") as recorder:
            server = f"tls://{FAR}:{recorder.port}"
            path = world.file("mcds.conf", config.replace("@", server))
            done = run("--config", path, *(word.replace("@", server) for word in words), "--tls-ca", world.ca.file, "--connect-timeout",
                       "20s", "counter", "get", "k")
            check(done.returncode == 1, f"a certificate {what}: {done}")
            check([bool(one) for one in recorder.certificates] == [shows], f"a certificate {what}: {recorder.certificates}")


# Stands in for memcached in a sandbox: keeps what it is sent.
STAND_IN = """#!{python}
import socket, sys, threading
listener = socket.socket(socket.AF_UNIX)
listener.bind(sys.argv[sys.argv.index("-s") + 1])
listener.listen(64)
def serve(connection):
    while True:
        got = connection.recv(65536)
        if not got:
            return
        with open({seen!r}, "ab") as out:
            out.write(got)
        words = got.split()
        connection.sendall(b"".join({{b"mn": b"MN\\r\\n", b"version": b"VERSION 1.6.18\\r\\n", b"mg": b"EN\\r\\n", b"set": b"STORED\\r\\n",
                                     b"get": b"END\\r\\n"}}.get(line.split(b" ")[0], b"") for line in got.split(b"\\r\\n")))
while True:
    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
"""


def a_sandbox_gets_only_what_is_given_inside(world):
    """Of the caller's logins, those of options and environment stay outside, as do a pool's; what the command inside gives is sent."""
    seen = os.path.join(world.directory, "seen")
    os.mkdir(os.path.join(world.directory, "bin"))
    stand_in = world.file("bin/memcached", STAND_IN.format(python=sys.executable, seen=seen), 0o755)
    path = f"{os.path.dirname(stand_in)}:{os.environ['PATH']}"
    login = ["--user", "app", "--password-file", world.caller_secret]
    managed = world.file("sandbox.conf", "pool = managed\n[pool managed]\nservers = tls://managed.example\nuser = app\n"
                         f"password_file = {world.pool_secret}\n")
    bare = f"user = app\npassword_file = {world.pool_secret}\n"
    for what, outer, inner, environment, expected in (
            ("nothing", [], [], {}, set()),
            ("options outside", login, [], {}, set()),
            ("options inside", [], login, {}, {CALLER}),
            ("the environment outside", [], [], {"MCDS_USER": "app", "MCDS_PASSWORD": CALLER}, set()),
            ("another pool", [], ["--config", managed], {}, set()),
            ("another pool, by the environment", [], ["--config", managed], {"MCDS_POOL": "managed"}, set()),
            ("keys before any section", [], ["--config", world.file("bare.conf", bare)], {}, None)):
        open(seen, "wb").close()
        done = run(*outer, "sandbox", "-N", "1", "--", mcds, *inner, "counter", "get", "k", PATH=path, **environment)
        with open(seen, "rb") as file:
            sent = file.read()
        found = {secret for secret in (POOL, CALLER) if secret.encode() in sent}
        if expected is None:
            check(done.returncode in (1, 77) and CALLER not in found, f"sandbox, {what}: {done} {sent!r}")
            continue
        check(b"counter:k" in sent and found == expected, f"sandbox, {what}: {done} {sent!r}")


def main():
    private_network.enter(mcds, FAR)
    with tempfile.TemporaryDirectory(prefix="mcds-credentials-") as directory:
        world = World(directory)
        a_login_goes_only_where_its_list_says(world)
        a_login_of_a_tls_list_goes_to_no_other_list_in_clear(world)
        a_certificate_goes_only_where_its_list_says(world)
        a_sandbox_gets_only_what_is_given_inside(world)
    finish()


if __name__ == "__main__":
    main()
