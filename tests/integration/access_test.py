#!/usr/bin/env python3
"""TLS and logins against real memcached servers and servers made up here: who is let in, and what is said to who is not.

Usage: access_test.py BUILD_DIR
"""
import contextlib
import glob
import json
import os
import socket
import ssl
import subprocess
import sys
import tempfile
import time

for room in ("support", "conformance"):
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", room))
from certificates import Authority, openssl
from checks import check, finish
from program import MCDS as mcds, clean_environment
from real_servers import end, start_on_port
from stub import Stub
from suite import Suite

PASSWORD = "s3cret-of-the-test"
patience = ["--timeout", "10s", "--connect-timeout", "10s"]
shown = []  # everything mcds printed


def run(*arguments, stdin=None, command=mcds, **environment):
    done = subprocess.run([command, *arguments], env=clean_environment(**{"HOME": "/nowhere", **environment}), capture_output=True, text=True,
                          timeout=60, check=False, input=stdin or "")
    shown.append(done.stdout + done.stderr)
    return done


def fails(what, done, status, *words):
    check(done.returncode == status and done.stdout == "", f"{what}: ended with {done.returncode}, printed {done.stdout!r}, said {done.stderr!r}")
    check(all(word in done.stderr for word in words), f"{what}: said {done.stderr!r}")
    check(status == 80 or "may have been" not in done.stderr, f"{what}: in doubt: {done.stderr!r}")


class Memcached:
    """A real one, on a port of the kernel's choice; ended on exit."""

    def __init__(self, *arguments, **environment):
        self.process, self.port = start_on_port(*arguments, **environment)
        self.plain = f"127.0.0.1:{self.port}"
        self.tls = f"tls://127.0.0.1:{self.port}"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        end(self.process)


def tls_options(certificate, key, *more):
    return ["-Z", "-o", ",".join([f"ssl_chain_cert={certificate}", f"ssl_key={key}", *more])]


def every_command(what, _, servers, *options):
    """The conformance suite, and batches that fill several records, against servers that start empty."""
    suite = Suite(mcds, servers, [*options, *patience]).all()
    check(suite.works > 0 and not suite.faults + suite.refused, f"{what}: {suite.line()}: {(suite.faults + suite.refused)[:3]}")
    options = ["-s", servers, *options]

    def ok(*words, stdin=None, expected=None):
        done = run(*patience, *options, *words, stdin=stdin)
        check(done.returncode == 0, f"{what}: {' '.join(words)}: {done.returncode} {done.stderr}")
        if expected is not None:
            check(done.stdout == expected, f"{what}: {' '.join(words)}: {done.stdout!r}")
    value = ["-o", "value"]
    ok(*value, "counter", "incr", "hits", expected="1\n")
    ok(*value, "counter", "incr", "hits", "41", expected="42\n")
    lines = "".join(f"c{i}\n" for i in range(3000))
    ok("counter", "incr", "-", stdin=lines)
    ok(*value, "counter", "get", "c0", "c2999", expected="1\n1\n")
    big = "x" * 700000
    ok("hash", "set", "h", "-", stdin=f"f\t{big}\n")
    ok(*value, "hash", "get", "h", "f", expected=big)
    ok("table", "add", "t", "-", stdin="".join(f"m{i}\n" for i in range(2000)))
    ok("table", "has", "t", "m1999")
    ok("ring", "diff", "--to", "127.0.0.1:1", "--live")
    ok("counter", "remove", "hits")


def long_values(directory, plain, trusted, tls_server):
    """Values longer than a TLS record, each with a request behind it: old servers read no such record to its end."""
    for size in (16300, 16384, 20000, 100000, 1000000):
        with open(f"{directory}/value", "w", encoding="ascii") as file:
            file.write("x" * size)
        value, to, moved = f"@{directory}/value", ["-s", tls_server, *trusted], ["-s", plain, *trusted, "ring", "move", "--to", tls_server]
        commands = [[*to, "item", "set", "i", value], [*to, "hash", "set", "long", f"f{size}", value],
                    ["-s", plain, "item", "set", f"moved{size}", value], [*moved, "--journal", f"{directory}/move{size}"]]
        if size <= 100000:
            commands += [[*to, "array", "add", f"long{size}", value], [*to, "eventlog", "put", "long", value]]
        for command in commands:
            done = run("--timeout", "2s", *command)
            check(done.returncode == 0 and done.stderr == "", f"{size} bytes over TLS: {command}: {done}")


def tls(directory, ca, other):
    good, key = ca.certificate("good", "DNS:localhost,IP:127.0.0.1")
    client, client_key = ca.certificate("client", "DNS:client")
    trusted = ["--tls-ca", ca.file]
    with Memcached(*tls_options(good, key)) as a, Memcached(*tls_options(good, key)) as b, \
            Memcached() as c:
        every_command("TLS", "-s", a.tls, *trusted)
        long_values(directory, c.plain, trusted, a.tls)
        every_command("a pool with and without", "-s", f"m1={b.tls},m2={c.plain}", *trusted)
        incr = ["counter", "incr", "n"]
        fails("a CA the system does not know", run("-s", a.tls, *incr), 77, "--tls-ca")
        fails("another CA", run("-s", a.tls, "--tls-ca", other.file, *incr), 77, other.file, "did not sign")
        fails("a file without certificates", run("-s", a.tls, "--tls-ca", key, *incr), 78, key)
        fails("no such CA file", run("-s", a.tls, "--tls-ca", "/nowhere/ca.pem", *incr), 66, "/nowhere/ca.pem")
        fails("a key without a certificate", run("-s", a.tls, "--tls-key", key, *incr), 64, "--tls-cert")
        fails("a key of another certificate", run("-s", a.tls, *trusted, "--tls-cert", client, "--tls-key", key, *incr), 78, client)
        fails("another name", run("-s", a.tls, *trusted, "--tls-name", "elsewhere.example", *incr), 77, "elsewhere.example", "--tls-name")
        check(run("-s", a.tls, *patience, *trusted, "--protocol", "classic", *incr).returncode == 0, "classic words over TLS")
        check(run("-s", f"tls://localhost:{a.port}", *patience, *trusted, *incr).returncode == 0, "a name instead of an address")
        check(run("-s", a.plain, "--tls", *patience, *trusted, *incr).returncode == 0, "--tls")
        check(run("-s", a.tls, *patience, *incr, MCDS_TLS_CA=ca.file).returncode == 0, "MCDS_TLS_CA")
        check(run("-s", f"tls://127.0.0.1:{a.port}", *patience, *trusted, "--tls-name", "localhost", *incr).returncode == 0, "--tls-name")
        done = run("-s", a.tls, *patience, "--tls-insecure", *incr)
        check(done.returncode == 0 and done.stderr.count("not verified") == 1, f"--tls-insecure: {done}")
        done = run("-s", a.plain, "--timeout", "300ms", *incr)
        fails("plain to TLS", done, 77, "requires TLS", "tls://")
        for verb in (["item", "list"], ["item", "hot", "--for", "100ms"], ["ring", "move", "--to", c.plain, "--dry-run", "-q"]):
            done = run("-s", a.plain, *patience, *verb)
            check(done.returncode == 77 and "requires TLS" in done.stderr, f"plain to TLS: {verb}: {done}")
        begun = time.monotonic()
        fails("TLS to plain", run("-s", c.tls, *trusted, "--connect-timeout", "300ms", *incr), 69, "TLS")
        check(time.monotonic() - begun < 20, "TLS to plain: waits without end")
        same = [run("-s", f"a={url}", *trusted, *patience, "where", "k").stdout for url in (a.tls, a.plain)]
        check(same[0] == same[1], f"the scheme is hashed: {same}")
    for what, made, words in (
            ("expired", ca.certificate("expired", "IP:127.0.0.1", at="2024-01-01 00:00:00"), ("expired", "renew")),
            ("not valid yet", ca.certificate("early", "IP:127.0.0.1", at="2099-01-01 00:00:00"), ("clock",)),
            ("for another name", ca.certificate("wrong", "DNS:elsewhere.example"), ("not for 127.0.0.1", "--tls-name"))):
        with Memcached(*tls_options(*made)) as server:
            fails(f"a certificate that is {what}", run("-s", server.tls, *trusted, "counter", "incr", "n"), 77, *words)
    with Memcached(*tls_options(good, key, "ssl_verify_mode=3", f"ssl_ca_cert={ca.file}")) as server:
        every_command("client certificates", "-s", server.tls, *trusted, "--tls-cert", client, "--tls-key", client_key)
        for verb in (["counter", "incr", "n"], ["item", "list"], ["item", "hot", "--for", "100ms"]):
            fails(f"no client certificate: {verb}", run("-s", server.tls, *patience, *trusted, *verb), 77, "--tls-cert")
        stranger = other.certificate("client", "DNS:client")
        done = run("-s", server.tls, *patience, *trusted, "--tls-cert", stranger[0], "--tls-key", stranger[1], "counter", "incr", "n")
        fails("a client certificate of another CA", done, 77, "does not accept", stranger[0])
        done = run("-s", server.tls, *patience, *trusted, "--tls-cert", client, "--tls-key", client_key, "counter", "get", "n")
        check(done.returncode == 1, f"a refused increment was counted: {done}")


def revoked(directory, ca, other):
    """--tls-crl: revoked certificates, and those of a CA whose list is missing, are not accepted."""
    good, bad = ca.certificate("kept", "IP:127.0.0.1"), ca.certificate("revoked", "IP:127.0.0.1")
    lists = {"of nothing": ca.revocations(), "of one": ca.revocations(bad[0]), "another CA's": other.revocations()}
    get = ["counter", "get", "n"]
    with Memcached(*tls_options(*good)) as kept, Memcached(*tls_options(*bad)) as gone:
        for what, server, crl, status in (("no list", gone, None, 1), ("an empty list", gone, "of nothing", 1), ("a list", gone, "of one", 77),
                                          ("a list without it", kept, "of one", 1), ("no list of its CA", kept, "another CA's", 77)):
            words = ["--tls-ca", ca.file, *(["--tls-crl", lists[crl]] if crl else [])]
            done = run("-s", server.tls, *patience, *words, *get)
            check(done.returncode == status, f"revocations, {what}: {done}")
            if status == 77:
                check("revo" in done.stderr or "CRL" in done.stderr, f"revocations, {what}: {done}")
            config = os.path.join(directory, "revocations.conf")
            with open(config, "w", encoding="utf-8") as file:
                file.write(f"[pool main]\nservers = {server.tls}\ntls_ca = {ca.file}\n" + (f"tls_crl = {lists[crl]}\n" if crl else ""))
            done = run("--config", config, "-P", "main", *patience, *get)
            check(done.returncode == status, f"revocations in a pool, {what}: {done}")
        fails("no such list", run("-s", kept.tls, "--tls-ca", ca.file, "--tls-crl", "/nowhere/crl.pem", *get), 66, "/nowhere/crl.pem")
        fails("no list in the file", run("-s", kept.tls, "--tls-ca", ca.file, "--tls-crl", good[0], *get), 78, good[0])


def encrypted_keys(directory, ca):
    """--tls-key-password-file: the key's password, from a file, and nothing that asks a terminal for it."""
    server, (certificate, key) = ca.certificate("for-keys", "IP:127.0.0.1"), ca.certificate("encrypted", "DNS:client")
    secret, wrong = (os.path.join(directory, name) for name in ("key-password", "wrong-password"))
    for path, text in ((secret, PASSWORD), (wrong, "another")):
        with open(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600), "w", encoding="utf-8") as file:
            file.write(text + "\n")
    openssl("ec", "-aes256", "-passout", f"pass:{PASSWORD}", "-in", key, "-out", key + ".encrypted")
    get = ["counter", "get", "n"]
    with Memcached(*tls_options(*server, "ssl_verify_mode=3", f"ssl_ca_cert={ca.file}")) as memcached:
        words = ["-s", memcached.tls, *patience, "--tls-ca", ca.file, "--tls-cert", certificate, "--tls-key", key + ".encrypted"]
        check(run(*words, "--tls-key-password-file", secret, *get).returncode == 1, "an encrypted key")
        fails("an encrypted key without its password", run(*words, *get), 78, key + ".encrypted", "--tls-key-password-file")
        fails("an encrypted key with another password", run(*words, "--tls-key-password-file", wrong, *get), 78, key + ".encrypted")
        config = os.path.join(directory, "keys.conf")
        with open(config, "w", encoding="utf-8") as file:
            file.write(f"[pool main]\nservers = {memcached.tls}\ntls_ca = {ca.file}\ntls_cert = {certificate}\n"
                       f"tls_key = {key}.encrypted\ntls_key_password_file = {secret}\n")
        check(run("--config", config, "-P", "main", *patience, *get).returncode == 1, "an encrypted key in a pool")


def intermediate_authority(directory, root):
    """--tls-ca may name the CA that signed, whoever signed that CA's certificate."""
    middle = Authority(directory, "middle")
    extensions = os.path.join(directory, "middle.ext")
    with open(extensions, "w", encoding="utf-8") as file:
        file.write("basicConstraints=critical,CA:true\n")
    openssl("req", "-new", "-key", middle.key, "-subj", "/CN=middle", "-out", middle.file + ".csr")
    openssl("x509", "-req", "-in", middle.file + ".csr", "-CA", root.file, "-CAkey", root.key, "-CAcreateserial", "-days", "1",
            "-extfile", extensions, "-out", middle.file)
    leaf, key = middle.certificate("leaf", "IP:127.0.0.1")
    with open(leaf + ".chain", "w", encoding="utf-8") as chain:
        for part in (leaf, middle.file):
            with open(part, encoding="utf-8") as file:
                chain.write(file.read())
    get = ["counter", "get", "n"]
    for what, sent, roots in (("a whole chain", leaf + ".chain", (middle.file, root.file)), ("the leaf alone", leaf, (middle.file,))):
        with Memcached(*tls_options(sent, key)) as server:
            for trusted in roots:
                done = run("-s", server.tls, *patience, "--tls-ca", trusted, *get)
                check(done.returncode == 1, f"an intermediate CA, {what} is sent, {trusted} is trusted: {done}")
    with Memcached(*tls_options(leaf, key)) as server:
        fails("the root alone, without the chain", run("-s", server.tls, "--tls-ca", root.file, *get), 77, "did not sign")


def certificates_that_end(directory, ca):
    """`servers` says when they end, and warns of those that do soon."""
    soon, later = ca.certificate("soon", "IP:127.0.0.1", days=13), ca.certificate("later", "IP:127.0.0.1", days=16)
    with Memcached(*tls_options(*soon)) as a, Memcached(*tls_options(*later)) as b, Memcached() as c:
        done = run("-s", f"{a.tls},{b.tls},{c.plain}", *patience, "--tls-ca", ca.file, "servers")
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        check(["certificate_ends_at" in line for line in lines] == [True, True, False], f"certificates that end: {done}")
        check(done.stderr.count("certificate expires") == 1 and f"127.0.0.1:{a.port}" in done.stderr, f"certificates that end: {done}")
        check("in 12 days" in done.stderr and done.returncode == 0, f"certificates that end: {done}")


def deadlines(directory, ca):
    """A handshake that stops, that comes a byte a second, that is cut off."""
    good, key = ca.certificate("good", "DNS:localhost,IP:127.0.0.1")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(good, key)

    def hello(connection):
        """What a server says first, by a handshake in memory."""
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        session = context.wrap_bio(incoming, outgoing, server_side=True)
        incoming.write(connection.recv(16384))
        try:
            session.do_handshake()
        except ssl.SSLWantReadError:
            pass
        return outgoing.read()

    def stop_in_the_middle(connection):
        connection.sendall(hello(connection)[:500])
        connection.recv(1)

    def drip(connection):
        for byte in hello(connection):
            connection.sendall(bytes([byte]))
            time.sleep(0.1)

    def cut_off(connection):
        connection.sendall(hello(connection)[:500])

    def never(connection):
        while connection.recv(1000):
            pass

    def accept_and_stop(connection):
        session = context.wrap_socket(connection, server_side=True)
        while session.recv(1000):
            pass

    def talk_plain(connection):
        connection.recv(1000)
        connection.sendall(b"ERROR\r\n")

    incr = ["--tls-ca", ca.file, "--timeout", "300ms", "--connect-timeout", "300ms", "counter", "incr", "n"]
    for what, serve, status, words in (
            ("a handshake that stops in the middle", stop_in_the_middle, 69, ["handshake", "support TLS"]),
            ("a handshake in drops", drip, 69, ["handshake"]),
            ("a handshake that is cut off", cut_off, 69, ["closed the connection during the TLS handshake"]),
            ("a server that never answers", never, 69, ["handshake"]),
            ("a server that answers in the clear", talk_plain, 69, ["does not support TLS"]),
            ("a server that stops after the handshake", accept_and_stop, 80, ["no reply"])):
        with Stub(serve) as stub:
            begun = time.monotonic()
            fails(what, run("-s", f"tls://127.0.0.1:{stub.port}", *incr), status, *words)
            check(time.monotonic() - begun < 20, f"{what}: waits without end")


def logins(directory, ca):
    good, key = ca.certificate("good", "DNS:localhost,IP:127.0.0.1")
    users, secret, wrong, public = (f"{directory}/{name}" for name in ("users", "secret", "wrong", "public"))
    for path, text in ((users, f"app:{PASSWORD}\n"), (secret, PASSWORD + "\n"), (wrong, f"not-{PASSWORD}\n"), (public, PASSWORD + "\n")):
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(path, 0o600)
    os.chmod(public, 0o644)
    login = ["--user", "app", "--password-file", secret]
    incr = [*patience, "counter", "incr", "n"]
    with Memcached("-Y", users) as a, Memcached("-Y", users) as b:
        every_command("a login", "-s", a.plain, *login)
        every_command("two logins", "-s", f"m1={a.plain},m2={b.plain}", "--namespace", "two:", *login)
        fails("no login", run("-s", a.plain, *incr), 77, "requires a login", "--user", "--password-file")
        fails("a wrong password", run("-s", a.plain, "--user", "app", "--password-file", wrong, *incr), 77, "rejects the login")
        fails("a wrong user", run("-s", a.plain, "--user", "somebody", "--password-file", secret, *incr), 77, "rejects the login")
        fails("the other form", run("-s", a.plain, *login, "--auth", "user-key", *incr), 77, "rejects the login", "--auth")
        fails("the other form, keys", run("-s", f"{a.plain},{b.plain}", *login, "--auth", "user-key", *patience, "where", "--guess"), 77,
              "rejects")
        fails("a probe without a login", run("-s", a.plain, "where", "--probe", "k", "-q"), 77)
        fails("keys without a login", run("-s", f"{a.plain},{b.plain}", *patience, "where", "--guess"), 77, "requires a login")
        fails("keys with a wrong password", run("-s", f"{a.plain},{b.plain}", "--user", "app", "--password-file", wrong, *patience,
                                              "where", "--guess"), 77, "rejects the login")
        done = run("-s", a.plain, *login, *patience, "-o", "value", "counter", "incr", "fresh")
        check(done.stdout == "1\n", f"what a refused login sent was counted: {done}")
        done = run("-s", a.plain, *patience, "servers")
        check(done.returncode == 77 and json.loads(done.stdout)["up"] is False, f"servers without a login: {done}")
        for what, environment in (("MCDS_PASSWORD", {"MCDS_PASSWORD": PASSWORD}), ("MCDS_PASSWORD_FILE", {"MCDS_PASSWORD_FILE": secret})):
            check(run("-s", a.plain, *incr, MCDS_USER="app", **environment).returncode == 0, f"a login from {what}")
        config = f"{directory}/mcds.conf"
        with open(config, "w", encoding="utf-8") as file:
            file.write(f"[pool main]\nservers = {a.plain}\nuser = app\npassword_file = {secret}\n")
        check(run("--config", config, "-P", "main", *incr).returncode == 0, "a login from the config")
        done = run("-s", a.plain, "--user", "app", "--password-file", public, *incr)
        check(done.returncode == 0 and "chmod 600" in done.stderr, f"a password others can read: {done}")
        check("chmod" not in run("-s", a.plain, *login, *incr).stderr, "a warning of a password that nobody else can read")
    with Memcached() as server:
        check(run("-s", server.plain, *login, *incr).returncode == 0, "a login where none is wanted")
        with socket.create_connection(("127.0.0.1", server.port)) as connection:
            connection.sendall(b"get mcds:login\r\n")
            check(connection.recv(1000) == b"END\r\n", "a server that wants no login keeps the password")
        for verb in (incr, [*patience, "where", "--guess"], [*patience, "servers"]):
            servers = f"{server.plain},localhost:{server.port}"
            done = run("-s", servers, *login, "--auth", "user-key", *verb)
            check(done.returncode == 77 and "requires no login" in done.stdout + done.stderr, f"a server that wants no login: {done}")
            with socket.create_connection(("127.0.0.1", server.port)) as connection:
                connection.sendall(b"get app\r\n")
                check(connection.recv(1000) == b"END\r\n", f"user-key, {verb}: a server that wants no login keeps the password")
    with Memcached("-Y", users, *tls_options(good, key)) as server:
        every_command("a login over TLS", "-s", server.tls, "--tls-ca", ca.file, *login)
        fails("no login over TLS", run("-s", server.tls, "--tls-ca", ca.file, *incr), 77, "requires a login")
    fails("a user without a password", run("--user", "app", *incr), 64, "--password-file")
    fails("a password without a user", run("--password-file", secret, *incr), 64, "--user")
    fails("no such password file", run("--user", "app", "--password-file", "/nowhere/p", *incr), 66, "/nowhere/p")
    fails("a password as an option", run("--user", "app", f"--password={PASSWORD}", *incr), 64, "--password")
    for text in (f"app:{PASSWORD}@127.0.0.1:1", f"m1=app:{PASSWORD}@h:1", f"tls://app:{PASSWORD}@h:1", f"h:1,app:{PASSWORD},x@h:1",
                 f"app:{PASSWORD}=@h:1"):
        fails("a login in the server list", run("-s", text, *incr), 64, "--password-file")
        fails("a login in MCDS_SERVERS", run(*incr, MCDS_SERVERS=text), 64, "--password-file")


def binary_only(directory):
    """What they say is in a protocol that mcds does not speak: they are known by a question in it."""
    login = {"MCDS_USER": "app", "MCDS_PASSWORD": PASSWORD}
    with open(f"{directory}/memcached.conf", "w", encoding="utf-8") as file:
        file.write("mech_list: plain\n")
    for what, options, status, words in (("-B binary", ["-B", "binary"], 76, "-B binary"), ("-S", ["-S"], 77, "-S")):
        with Memcached(*options, SASL_CONF_PATH=directory) as server:
            incr = ["-s", server.plain, *patience, "counter", "incr", "n"]
            fails(what, run(*incr), status, words, "binary protocol")
            fails(f"{what}, with a login", run(*incr, **login), status, words, "binary protocol")
            fails(f"{what}, item hot", run("-s", server.plain, *patience, "item", "hot", "--for", "100ms"), status, words, "binary protocol")
            fails(f"{what}, classic words", run(*incr[:-1], "n" * 24, "--protocol", "classic"), status, words, "binary protocol")
            # Shorter than a binary header, which such a server waits for.
            short = run("-s", server.plain, *patience, "servers")
            check("binary protocol" in short.stdout, f"{what}: servers says {short.stdout}")
            for verb in (["servers"], ["lock", "run", "l", "--", "true"], ["counter", "get", "n"]):
                # Classic words are followed by nothing that fills the header; the question after the timeout is a short one.
                for _ in range(10):
                    unfilled = run("-s", server.plain, "--timeout", "500ms", "--protocol", "classic", *verb)
                    if "binary protocol" in unfilled.stdout + unfilled.stderr:
                        break
                check("binary protocol" in unfilled.stdout + unfilled.stderr, f"{what}, {verb} in classic words: {unfilled}")
                check(unfilled.returncode == (69 if verb == ["servers"] and status == 76 else status),
                      f"{what}, {verb} in classic words: exit {unfilled.returncode}")


def user_key_login():
    """As MemCachier documents it: the first command is a set of the user's name to the password. A read before it is refused
    in words of the server's own, or by closing."""
    asked, refusals = [], iter([b"ERROR unauthenticated\r\n", b""])

    def serve(connection):
        expected = b"set app 0 0 %d\r\n%b\r\n" % (len(PASSWORD), PASSWORD.encode())
        data = connection.recv(1000)
        if data.startswith(b"get "):
            check(PASSWORD.encode() not in data and b"\r\n" == data[-2:] and data.count(b"\r\n") == 1, f"before the login: {data}")
            return connection.sendall(next(refusals))
        while len(data) < len(expected):
            data += connection.recv(1000)
        asked.append(data)
        connection.sendall(b"STORED\r\n")
        rest = data[len(expected):]
        while True:
            while b"\r\n" in rest:
                line, rest = rest.split(b"\r\n", 1)
                answer = {b"mn": b"MN\r\n", b"version": b"VERSION 1.6.18\r\n"}.get(line)
                connection.sendall(answer or (b"END\r\n" if line.startswith(b"get") else b"ERROR\r\n"))
            more = connection.recv(1000)
            if not more:
                return
            rest += more

    with Stub(serve) as stub:
        environment = {"MEMCACHIER_SERVERS": f"127.0.0.1:{stub.port}", "MEMCACHIER_USERNAME": "app", "MEMCACHIER_PASSWORD": PASSWORD}
        for _ in range(2):
            done = run("--servers-from", "env:MEMCACHIER", *patience, "counter", "get", "n", **environment)
            check(done.returncode == 1, f"env:MEMCACHIER: {done}")
        check(all(b"set app 0 0 " in data for data in asked) and asked, f"env:MEMCACHIER: {asked}")
    fails("env: without servers", run("--servers-from", "env:MEMCACHEDCLOUD", "counter", "get", "n"), 78, "MEMCACHEDCLOUD_SERVERS")


def a_login_that_is_stored_is_removed():
    """By servers that refuse a read, and then take the login for an item; by one without expiry."""
    def keeps(refuses):
        items = {}

        def serve(connection):
            data = b""
            while True:
                more = connection.recv(1000)
                if not more:
                    return
                data += more
                while b"\r\n" in data:
                    line, rest = data.split(b"\r\n", 1)
                    words = line.split(b" ")
                    if words[0] == b"set":
                        size = int(words[4])
                        if len(rest) < size + 2:
                            break
                        items[words[1]], rest = rest[:size], rest[size + 2:]
                        connection.sendall(b"STORED\r\n")
                    elif words[0] == b"get" and words[1] in items:
                        value = items[words[1]]
                        connection.sendall(b"VALUE %b 0 %d\r\n%b\r\nEND\r\n" % (words[1], len(value), value))
                    elif words[0] == b"get":
                        connection.sendall(b"SERVER_ERROR busy\r\n" if refuses else b"END\r\n")
                    elif words[0] == b"delete":
                        connection.sendall(b"DELETED\r\n" if items.pop(words[1], None) else b"NOT_FOUND\r\n")
                    else:
                        connection.sendall(b"ERROR\r\n")
                    data = rest
        return items, serve

    for form, refuses in (("user-key", True), ("ascii", False)):
        items, serve = keeps(refuses)
        with Stub(serve) as stub:
            done = run("-s", f"127.0.0.1:{stub.port}", *patience, "--auth", form, "counter", "incr", "n", MCDS_USER="app",
                       MCDS_PASSWORD=PASSWORD)
            fails(f"{form}: a login that is stored", done, 77, "removed")
            check(not items, f"{form}: left behind: {items}")


def denied_in_other_words():
    """What a login is answered in words that we do not know, or by closing: nothing was applied."""
    for what, answer in (("MemCachier", b"ERROR\r\n"), ("a proxy", b"SERVER_ERROR access denied\r\n"),
                         ("words of its own", b"CLIENT_ERROR Username/password mismatch\r\n"), ("a colon", b"ERROR: auth\r\n"),
                         ("closing", b"")):
        def serve(connection, answer=answer):
            if b"set mcds:login" in connection.recv(1000):
                connection.sendall(answer)
                if answer:
                    connection.recv(1000)
        with Stub(serve) as stub:
            for verb in (["counter", "incr", "n"], ["hash", "set", "h", "f", "v"], ["lock", "acquire", "l"]):
                done = run("-s", f"127.0.0.1:{stub.port}", *patience, *verb, MCDS_USER="app", MCDS_PASSWORD=PASSWORD)
                fails(f"denied by {what}, {verb}", done, 77, "login")


def names_that_are_none(directory, ca):
    """A name that OpenSSL would take for no name, or for any: nothing is checked against it, so it is refused."""
    wrong, key = ca.certificate("another", "DNS:host.elsewhere.example")
    with Memcached(*tls_options(wrong, key)) as server:
        get = ["--tls-ca", ca.file, *patience, "counter", "get", "n"]
        for name in (".", "", "%x", "..", ".elsewhere.example", "*", "%", "a b", "host.elsewhere.example,x"):
            done = run("-s", server.tls, "--tls-name", name, *get)
            check(done.returncode == 64 and done.stdout == "", f"--tls-name {name!r}: {done}")
            config = f"{directory}/name.conf"
            with open(config, "w", encoding="utf-8") as file:
                file.write(f"[pool main]\nservers = {server.tls}\ntls_name = {name}\n")
            done = run("--config", config, "-P", "main", *get)
            check(done.returncode == 78 and done.stdout == "", f"tls_name = {name!r}: {done}")
        check(run("-s", server.tls, "--tls-name", "host.elsewhere.example", *get).returncode == 1, "its own name")


def command_lines():
    """Of all processes, as ps shows them."""
    lines = []
    for path in glob.glob("/proc/[0-9]*/cmdline"):
        with contextlib.suppress(OSError), open(path, "rb") as file:
            lines.append(file.read().replace(b"\0", b" ").decode("utf-8", "replace"))
    return "\n".join(lines)


def no_secret_is_shown(directory):
    secret = f"{directory}/secret"
    environment = {"MCDS_USER": "app", "MCDS_PASSWORD": PASSWORD}

    def hold(connection):
        lines = command_lines()
        shown.append(lines)
        check("counter incr ps" in lines, "the command that is looked for is not shown")
        connection.recv(1000)

    with Stub(hold) as stub:
        run("-s", f"127.0.0.1:{stub.port}", "--user", "app", "--password-file", secret, "-v", "--timeout", "5s", "counter", "incr", "ps")
    for words in (["__describe"], ["__complete", "counter", "incr", "--user", ""], ["--help"], ["-v", "counter", "incr", "n"]):
        run(*words, **environment)
    check(not any(PASSWORD in text for text in shown), f"the password was shown: {[text for text in shown if PASSWORD in text][:3]}")


def main():
    with tempfile.TemporaryDirectory(prefix="mcds-access-") as directory:
        ca, other = Authority(directory, "ca"), Authority(directory, "other")
        tls(directory, ca, other)
        revoked(directory, ca, other)
        encrypted_keys(directory, ca)
        intermediate_authority(directory, ca)
        certificates_that_end(directory, ca)
        deadlines(directory, ca)
        logins(directory, ca)
        binary_only(directory)
        user_key_login()
        a_login_that_is_stored_is_removed()
        denied_in_other_words()
        names_that_are_none(directory, ca)
        no_secret_is_shown(directory)
    finish()


if __name__ == "__main__":
    main()
