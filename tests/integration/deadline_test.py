#!/usr/bin/env python3
"""--deadline bounds everything that waits: silent pipes wherever something is read, and name servers that never answer. In a
network and with a resolv.conf of its own.

Usage: deadline_test.py BUILD_DIR
"""
import contextlib
import ctypes
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import private_network
from checks import check, finish
from program import MCDS, clean_environment
from real_servers import Servers

BOUND_S = 4  # the C library alone would wait for 5 or 10; a pipe for ever

MS_BIND = 4096
ALONE_S = 10  # of the C library's own, with two attempts


def use_resolver_settings(path):
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(path.encode(), os.path.realpath("/etc/resolv.conf").encode(), None, MS_BIND, None) != 0:
        raise OSError(ctypes.get_errno(), "bind mount of resolv.conf")


@contextlib.contextmanager
def silent_name_server():
    """In a network of its own: a name server that never answers, and a memcached."""
    private_network.enter(MCDS, "10.0.0.1")
    with Servers() as servers, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
        silent.bind(("127.0.0.1", 53))
        settings = os.path.join(servers.directory, "resolv.conf")
        with open(settings, "w", encoding="ascii") as file:
            file.write("nameserver 127.0.0.1\n")
        use_resolver_settings(settings)
        yield servers


def run(words, server, stdin=subprocess.DEVNULL, deadline="300ms"):
    started = time.monotonic()
    done = subprocess.run([MCDS, "--deadline", deadline, *words], stdin=stdin, capture_output=True, text=True, check=False, timeout=60,
                          env=clean_environment(MCDS_SERVERS=server, HOME="/nowhere"))
    return done, time.monotonic() - started


def readers_that_pause(server):
    """Whoever reads the answers is waited for no longer either; what is read late but in time is whole."""
    keys = tempfile.TemporaryFile()
    keys.write("".join(f"key-{i}\n" for i in range(20000)).encode())
    for deadline, pause, status in (("1s", None, 75), ("60s", 1, 0)):
        reading, writing = os.pipe()
        keys.seek(0)
        started = time.monotonic()
        with subprocess.Popen([MCDS, "-s", server, "--deadline", deadline, "where", "-"], stdin=keys, stdout=writing,
                              stderr=subprocess.PIPE) as process:
            os.close(writing)
            if pause is not None:
                time.sleep(pause)
                with open(reading, "rb", closefd=False) as file:
                    check(file.read().count(b"\n") == 20000, f"a reader that pauses for {pause} s: lines are missing")
            try:
                message = process.communicate(timeout=60)[1]
            except subprocess.TimeoutExpired:
                process.kill()
                message = process.communicate()[1]
            check(process.returncode == status, f"a reader that pauses, {deadline}: {process.returncode} {message!r}")
        os.close(reading)
        if status == 75:
            check(b"deadline" in message and time.monotonic() - started < BOUND_S + 1, f"a reader that pauses: {message!r}")


@contextlib.contextmanager
def full_pipe():
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    size = 0
    with contextlib.suppress(BlockingIOError):
        while True:
            size += os.write(writing, b"x" * 4096)
    os.set_blocking(writing, True)
    yield writing, lambda: os.read(reading, size + 4096)[size:]
    os.close(reading)
    os.close(writing)


def answers_without_reader(server):
    """The answer to a change that is not read leaves it in doubt, also a sum; an answer to a question may be asked for again."""
    for words, status in ((["counter", "incr", "c"], 80), (["counter", "get", "c"], 75), (["counter", "get", "-"], 75),
                          (["eventlog", "put", "e", "-"], 80), (["array", "add", "a", "-"], 80), (["table", "add", "t", "a", "b"], 80),
                          (["table", "has", "t", "a", "b"], 75), (["visitors", "hit", "v", "--id", "-"], 80), (["item", "list"], 75),
                          (["item", "touch", "--ttl", "1h", "-"], 80), (["lock", "show", "-"], 75), (["item", "remove", "-"], 80)):
        with full_pipe() as (pipe, read), tempfile.TemporaryFile() as lines:
            lines.write(b"a\nb\n")
            lines.seek(0)
            with subprocess.Popen([MCDS, "-s", server, "--deadline", "1s", *words], stdin=lines, stdout=pipe, stderr=subprocess.PIPE) as process:
                message = process.communicate(timeout=60)[1]
            check(process.returncode == status and b"not being read" in message and read() == b"",
                  f"an answer that nobody reads, {words}: {process.returncode} {message!r}")


def silent_pipes(directory, server):
    fifo = os.path.join(directory, "fifo")
    os.mkfifo(fifo)
    reading, writing = os.pipe()  # open, and nothing comes
    of_input = [["hash", "set", "h", "f", "-"], ["key", "-"], ["item", "set", "k", "-"], ["array", "add", "a", "-"], ["table", "add", "t", "-"],
                ["eventlog", "put", "e", "-"], ["counter", "incr", "-"], ["visitors", "hit", "v", "--id", "-"], ["where", "-"],
                ["ring", "diff", "--to", "10.0.0.1", "--keys", "-"]]
    of_files = [["hash", "set", "h", "f", "@" + fifo], ["item", "set", "k", "@" + fifo], ["key", "@" + fifo],
                ["ring", "diff", "--to", "10.0.0.1", "--keys", fifo], ["--user", "u", "--password-file", fifo, "counter", "get", "c"],
                ["--config", fifo, "counter", "get", "c"], *[["--servers-from", f"{kind}:{fifo}", "where", "k"]
                                                              for kind in ("file", "nutcracker", "mcrouter", "php-ini")]]
    for words in [*of_input, *of_files]:
        done, seconds = run(words, server, stdin=reading)
        check(done.returncode == 75 and "deadline" in done.stderr, f"a silent pipe, {' '.join(words)}: {done}")
        check(seconds < BOUND_S, f"a silent pipe, {' '.join(words)}: {seconds:.1f} s")
    for words in (["lock", "run", "l", "--report", fifo, "--", "true"], ["counter", "incr", "c", "--errors", fifo],
                  ["item", "remove", "--prefix", "p:", "--yes", "--audit", fifo]):
        done, _ = run(words, server, deadline="30s")
        check(done.returncode == 73 and "no process reads the pipe" in done.stderr, f"a pipe that nobody reads, {' '.join(words)}: {done}")
    # A writer that comes later, and one that is gone before the end is read, are waited for.
    for delay in ("0", "0.3"):
        with subprocess.Popen(["sh", "-c", f"sleep {delay}; printf text > {fifo}"]):
            done, _ = run(["item", "set", "k", "@" + fifo], server, deadline="30s")
            check(done.returncode == 0 and '"size_bytes":4' in done.stdout, f"a pipe whose writer comes after {delay} s: {done}")
    done = subprocess.run(["bash", "-c", f"sleep 0.2 | cat <({MCDS} -s {server} item set k @<(printf texts))"], capture_output=True, text=True,
                          check=False, timeout=60)
    check('"size_bytes":5' in done.stdout, f"a process substitution: {done}")
    os.close(writing)
    done, _ = run(["item", "set", "k", "-"], server, stdin=reading)
    check(done.returncode == 0, f"a pipe that has ended: {done}")
    os.close(reading)


# What to run with each option that takes a FILE, and what is said of a pipe at whose other end nobody is.
OF_FILES = {
    "--report": (["lock", "run", "l", "--", "true"], 73), "--baseline": (["doctor", "--for", "100ms"], 75),
    "--cursor": (["eventlog", "fetch", "l"], 73), "--audit": (["item", "remove", "--prefix", "p:", "--yes"], 73),
    "--file": (["item", "keep", "--on", "SERVER", "--", "true"], 73), "--keys": (["ring", "check"], 75), "--journal": (["ring", "move", "--to", "SERVER"], 73),
    "--svg": (["ring"], 73), "--tls-ca": (["counter", "get", "c"], 75), "--tls-crl": (["counter", "get", "c"], 75),
    "--tls-cert": (["counter", "get", "c"], 75), "--tls-key": (["--tls-cert", "CERTIFICATE", "counter", "get", "c"], 75),
    "--tls-key-password-file": (["--tls-cert", "/dev/null", "counter", "get", "c"], 75),
    "--password-file": (["--user", "u", "counter", "get", "c"], 75), "--errors": (["counter", "get", "c"], 73),
    "--config": (["counter", "get", "c"], 75), "--fill": (["sandbox", "-N", "1", "--", "true"], 75)}


def declared_file_options():
    """Of every command and verb, from their help."""
    def help_of(*words):
        return subprocess.run([MCDS, *words, "--help"], capture_output=True, text=True, check=False).stdout
    options = set()
    for command in re.findall(r"^  ([a-z]+)  ", help_of(), re.MULTILINE):
        verbs = re.findall(r"^  ([a-z]+) ", help_of(command).partition("Verbs:")[2].partition("\n\n")[0], re.MULTILINE)
        for words in [[command], *([command, verb] for verb in verbs)]:
            options.update(re.findall(r"(--[a-z-]+) FILE", help_of(*words)))
    options.update(re.findall(r"(--[a-z-]+) FILE", help_of("config")))
    return options


def every_file_option(directory, server):
    fifo = os.path.join(directory, "never-written")
    os.mkfifo(fifo)
    declared = declared_file_options()
    certificate = os.path.join(directory, "certificate.pem")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", os.devnull, "-out", certificate, "-subj", "/CN=x"],
                   capture_output=True, check=True)
    check(declared <= set(OF_FILES), f"options that take a FILE and are not tried: {declared - set(OF_FILES)}")
    check(len(declared) >= 8, f"options are found in the help: {declared}")
    for option, (words, status) in OF_FILES.items():
        tls = option.startswith("--tls")
        words = [{"SERVER": server, "CERTIFICATE": certificate}.get(word, word) for word in words]
        where = words.index("--") if "--" in words else len(words)
        done, seconds = run([*words[:where], option, fifo, *words[where:]], "tls://127.0.0.1:1" if tls else server, deadline="600ms")
        check(done.returncode == status, f"{option} with a pipe that nobody writes: {done}")
        check(seconds < BOUND_S, f"{option} with a pipe that nobody writes: {seconds:.1f} s")
    os.remove(fifo)


def lines_in_doubt():
    """A change that may have been applied counts more than the input that did not end; the sum is told, too."""
    with Servers() as servers:
        process = servers.processes[0]
        for words, told in ((["counter", "incr", "-"], None), (["eventlog", "put", "e", "-"], '"failed":1'), (["table", "add", "t", "-"], None)):
            process.send_signal(signal.SIGSTOP)
            reading, writing = os.pipe()
            os.write(writing, b"a\n")
            done, seconds = run(["--timeout", "200ms", *words], servers.list, stdin=reading, deadline="600ms")
            os.close(writing)
            os.close(reading)
            process.send_signal(signal.SIGCONT)
            check(done.returncode == 80 and seconds < BOUND_S, f"a line in doubt, then the deadline, {words}: {seconds:.1f} s: {done}")
            check("deadline" in done.stderr and (told is None or told in done.stdout), f"a line in doubt, then the deadline, {words}: {done}")
        for number in range(40):
            check(run(["item", "set", f"k{number}", "v"], servers.list, deadline="60s")[0].returncode == 0, "an item is set")
        done, _ = run(["item", "remove", "--prefix", "k", "--yes", "--rate", "10/s"], servers.list, deadline="1s")
        check(done.returncode == 75 and '"unfinished":true' in done.stdout, f"a removal that is not finished says what it removed: {done}")


def costs_the_connect_timeout_once(server):
    """A name server that never answers, where no deadline ends it."""
    done, seconds = run(["-s", "cache1.example", "--connect-timeout", "300ms", "counter", "incr", "c"], server, deadline="60s")
    check(done.returncode == 69 and "name server" in done.stderr, f"one server behind a silent name server: {done}")
    check(seconds < ALONE_S / 2, f"one server behind a silent name server takes {seconds:.1f} s")
    servers = ",".join([server, "cache1.example", "cache2.example"])
    done, seconds = run(["-s", servers, "--connect-timeout", "300ms", "servers"], server, deadline="60s")
    check(done.returncode == 2 and '"up":true' in done.stdout, f"the servers with an address are shown: {done}")
    check(seconds < ALONE_S / 2, f"two names of three servers take {seconds:.1f} s")


def names_end_by_the_deadline(server):
    for words in (["--servers-from", "dns:cache.example", "where", "k"], ["--servers-from", "dnssrv:_mc._tcp.example", "where", "k"],
                  ["-s", "cache.example", "--connect-timeout", "30s", "counter", "incr", "c"],
                  ["-s", "10.0.0.9,cache.example", "--as", "spymemcached", "where", "k"],
                  ["-s", "cache.example", "--connect-timeout", "30s", "where", "--guess"],
                  ["-s", "10.0.0.9", "ring", "check", "--as", "spymemcached"]):
        done, seconds = run(words, server)
        check(seconds < BOUND_S, f"a silent name server, {' '.join(words)}: {seconds:.1f} s: {done}")
        check(done.returncode != 0 or "spymemcached" in words, f"a silent name server, {' '.join(words)}: {done}")


def main():
    with silent_name_server() as servers:
        silent_pipes(servers.directory, servers.list)
        every_file_option(servers.directory, servers.list)
        readers_that_pause(servers.list)
        answers_without_reader(servers.list)
        lines_in_doubt()
        costs_the_connect_timeout_once(servers.list)
        names_end_by_the_deadline(servers.list)
    finish()


if __name__ == "__main__":
    main()
