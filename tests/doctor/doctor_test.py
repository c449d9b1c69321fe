#!/usr/bin/env python3
"""mcds doctor on sick pools, each of which must be found under its own name on the right servers, and on healthy ones, of which none
may have a problem or a warning.

Usage: doctor_test.py BUILD_DIR [CASE…]
"""
import concurrent.futures
import contextlib
import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from certificates import Authority
from checks import check, finish
from pools import Client, Ward, store
from program import MCDS, answers
from real_servers import Servers, end, start_memcached

SICK, HEALTHY = {}, {}
FOLLOWED = []  # of each command of an advice that was run, whether a server was asked
# An advice that cannot be followed: usage, a file, an error of ours, a configuration, no command.
BROKEN = {64, 66, 70, 78, 126, 127}
ATTEMPTS = 5
MANY_KEYS = [f"key:{number}" for number in range(300)]


def sick(finding, interval="1s"):
    """`case(ward)` returns the pool, and the numbers of the servers that are to be found; None: the pool as a whole."""
    def add(case):
        SICK[case.__name__] = (case, finding, interval)
        return case
    return add


def healthy(case):
    HEALTHY[case.__name__] = case
    return case


def pool(ward, *numbers):
    return ",".join(ward.names(*numbers))


def faked(*words):
    return ["faketime", *words, "memcached", "-t", "1"]


def free_ports(count):
    with contextlib.ExitStack() as stack:
        return [stack.enter_context(socket.create_server(("127.0.0.1", 0))).getsockname()[1] for _ in range(count)]


# What the servers are started with, and which of them are found.
SETTINGS = [
    ("item_size_differs", "drift", ("", "", "-I 4m"), {2}),
    ("one_refuses_instead_of_evicting", "drift", ("-M", "", ""), {0}),
    ("one_without_cas", "drift", ("", "", "-C"), {2}),
    ("connections_differ", "drift", ("-c 2048", "-c 2048", ""), {2}),
    ("one_with_more_threads", "drift", ("-t 2", "-t 2", "-t 8"), {2}),
    ("few_connections_allowed", "limits_low", ("-c 50", "-c 50"), {0, 1}),
    ("small_items", "small_items_only", ("-I 512k", "-I 512k"), {0, 1}),
    ("one_lists_nothing", "dump_off", ("", "", "-X"), {2}),
    ("crawler_is_off", "no_crawler", ("-o no_lru_crawler", "-o no_lru_crawler"), {0, 1}),
    ("less_memory_than_its_weight", "weights_against_memory", ("-m 64", "-m 256", "-m 256"), {0, 1, 2}),
    ("speaks_binary_only", "wrong_service", ("", "", "-B binary"), {2}),
    ("three_plain", None, ("", "", ""), None),
    ("one_alone", None, ("",), None),
    ("large_items_everywhere", None, ("-I 8m -c 4096", "-I 8m -c 4096"), None),
]
# What the second of two servers was told.
TOLD = [("everything_will_be_gone", "flush_scheduled", "flush_all 3000"), ("statistics_by_prefix", "detail_on", "stats detail on"),
        ("made_verbose_later", "verbose", "verbosity 2")]
# What another service in the list says first, and to each request; None: it closes the connection.
SERVICES = [
    ("redis_in_the_list", [], b"-ERR unknown command\r\n"),
    ("redis_that_wants_a_password", [], b"-NOAUTH Authentication required.\r\n"),
    ("ssh_in_the_list", [b"SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n"], b""),
    ("a_mail_server_in_the_list", [b"220 mail.example ESMTP Postfix\r\n", b"502 5.5.2 Error: command not recognized\r\n"], b""),
    ("a_database_in_the_list", [b"J\0\0\0\n5.7.33\0\x05\0\0\0AZaz09~!\0\xff\xf7\x08\x02\0", b"\x01\0\0\x01\xff\x10\x04Got packets out of order"], b""),
    ("a_door_with_nobody_behind", [], None),  # a load balancer, or stunnel without its server
]


def case_of(name, finding):
    def add(case):
        case.__name__ = name
        return sick(finding)(case) if finding else healthy(case)
    return add


for title, wanted_finding, settings, numbers in SETTINGS:
    @case_of(title, wanted_finding)
    def _(ward, settings=settings, numbers=numbers):
        for flags in settings:
            ward.server(*flags.split())
        return pool(ward) if numbers is None else (pool(ward), numbers)

for title, wanted_finding, line in TOLD:
    @case_of(title, wanted_finding)
    def _(ward, line=line):
        ward.servers(2)
        ward.client(1).ask(line + "\r\n")
        return pool(ward), {1}

for title, first, each in SERVICES:
    @case_of(title, "wrong_service")
    def _(ward, first=first, each=each):
        ward.servers(2)

        def serve(connection):
            for text in first:
                connection.sendall(text)
            while each is not None and connection.recv(1000):
                connection.sendall(each)
        ward.stub(serve)
        return pool(ward), {2}


# Reach.

@sick("down")
def one_is_dead(ward):
    ward.servers(2)
    return pool(ward) + ",unix:/nowhere/m", {"unix:/nowhere/m"}


@sick("down")
def one_dies_between_the_looks(ward):
    ward.servers(3)
    ward.once(ward.processes[1].kill)
    return pool(ward), {1}


@sick("silent")
def one_is_stopped(ward):
    ward.servers(3)
    ward.processes[2].send_signal(signal.SIGSTOP)
    return pool(ward), {2}


@sick("silent")
def one_is_stopped_between_the_looks(ward):
    ward.servers(3)
    ward.once(lambda: ward.processes[0].send_signal(signal.SIGSTOP))
    return pool(ward), {0}


@sick("silent")
def one_is_stopped_over_tls(ward):
    authority = Authority(ward.directory, "ca")
    ports = [tls_server(ward, authority.certificate(f"s{n}", "IP:127.0.0.1", days=90)) for n in range(2)]
    ward.processes[1].send_signal(signal.SIGSTOP)
    ward.options += ["--tls-ca", authority.file]
    return ",".join(f"tls://127.0.0.1:{port}" for port in ports), {f"127.0.0.1:{ports[1]}"}


@sick("silent")
def one_is_stopped_for_a_binary_client(ward):
    ward.options += ["--protocol", "binary"]
    return one_is_stopped(ward)


@sick("down")
def one_is_dead_for_a_binary_client(ward):
    ward.options += ["--protocol", "binary"]
    return one_is_dead(ward)


def passwords(ward, written, used):
    for name, text in (("users", f"me:{written}\n"), ("password", used + "\n")):
        path = os.path.join(ward.directory, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(path, 0o600)
    ward.options += ["--user", "me", "--password-file", ward.directory + "/password"]


for title, wanted_finding, is_given, wanted_by, numbers in (
        ("login_not_given", "login_refused", False, (True, True), {0, 1}), ("one_that_wants_a_login", "login_refused", False, (False, False, True), {2}),
        ("one_without_login", "login_unused", True, (True, False), {1})):
    @case_of(title, wanted_finding)
    def _(ward, is_given=is_given, wanted_by=wanted_by, numbers=numbers):
        passwords(ward, "secret", "secret")
        if not is_given:
            ward.options.clear()
        for wants in wanted_by:
            ward.server(*(("-Y", ward.directory + "/users") if wants else ()))
        return pool(ward), numbers


@sick("login_refused")
def wrong_password(ward):
    passwords(ward, "secret", "other")
    ward.servers(2, "-Y", ward.directory + "/users")
    return pool(ward), {0, 1}


@sick("logins_fail")
def another_client_has_the_old_password(ward):
    passwords(ward, "secret", "secret")
    ward.servers(2, "-Y", ward.directory + "/users")

    def act():
        client = Client(ward.paths[0])
        client.ask("set x 0 0 7\r\nme wron\r\n")
        client.close()
        time.sleep(0.05)
    ward.meanwhile(act)
    return pool(ward), {0}


def tls_server(ward, files):
    port = free_ports(1)[0]
    ward.processes.append(ward.program(["memcached", "-t", "1", "-l", "127.0.0.1", "-p", str(port), "-U", "0", "-Z", "-o",
                                        f"ssl_chain_cert={files[0]},ssl_key={files[1]}"], port))
    return port


@sick("certificate_refused")
def certificate_for_another_name(ward):
    authority = Authority(ward.directory, "ca")
    ports = [tls_server(ward, authority.certificate(f"s{n}", name, days=90)) for n, name in enumerate(("IP:127.0.0.1", "DNS:elsewhere"))]
    ward.options += ["--tls-ca", authority.file]
    return ",".join(f"tls://127.0.0.1:{port}" for port in ports), {f"127.0.0.1:{ports[1]}"}


@sick("certificate_refused")
def certificate_of_another_authority(ward):
    ours, theirs = Authority(ward.directory, "ours"), Authority(ward.directory, "theirs")
    ports = [tls_server(ward, authority.certificate("s", "IP:127.0.0.1", days=90)) for authority in (theirs, ours)]
    ward.options += ["--tls-ca", ours.file]
    return ",".join(f"tls://127.0.0.1:{port}" for port in ports), {f"127.0.0.1:{ports[0]}"}


@sick("certificate_ends")
def certificate_ends_soon(ward):
    authority = Authority(ward.directory, "ca")
    ports = [tls_server(ward, authority.certificate(f"s{days}", "IP:127.0.0.1", days=days)) for days in (90, 5)]
    ward.options += ["--tls-ca", authority.file]
    return ",".join(f"tls://127.0.0.1:{port}" for port in ports), {f"127.0.0.1:{ports[1]}"}


@sick("wrong_service")
def tls_not_asked_for(ward):
    authority = Authority(ward.directory, "ca")
    port = tls_server(ward, authority.certificate("s", "IP:127.0.0.1", days=90))
    return f"127.0.0.1:{port}", {f"127.0.0.1:{port}"}


@sick("slow")
def one_answers_late(ward):
    ward.servers(3)
    late = ward.relay(2, delay=0.03)
    return pool(ward, 0, 1, late), {late}


@sick("slow")
def one_is_late_most_of_the_time(ward):
    ward.servers(3)
    answers = []

    def change(data):
        answers.append(len(data))
        time.sleep(0 if len(answers) % 3 == 0 else 0.03)
        return data
    late = ward.relay(1, change)
    return pool(ward, 0, 2, late), {late}


@sick("silent")
def connections_are_not_taken(ward):
    ward.servers(2)

    def serve(connection):
        while connection.recv(1000):
            pass
    ward.stub(serve)
    return pool(ward), {2}


@sick("same_server")
def one_socket_under_two_names(ward):
    ward.servers(2)
    os.symlink(ward.paths[0], ward.directory + "/again")
    return pool(ward) + f",unix:{ward.directory}/again", {0, f"unix:{ward.directory}/again"}


@sick("same_server")
def one_server_on_two_ports(ward):
    first, second, other = free_ports(3)
    for ports in ((first, second), (other,)):
        ward.program(["memcached", "-t", "1", "-l", ",".join(f"127.0.0.1:{port}" for port in ports), "-U", "0"], ports[-1])
    return f"127.0.0.1:{first},127.0.0.1:{other},127.0.0.1:{second}", {f"127.0.0.1:{first}", f"127.0.0.1:{second}"}


@sick("same_server")
def one_server_behind_a_relay(ward):
    ward.servers(2)
    return pool(ward, 0, 1, ward.relay(0)), {0, 2}


# Versions and clocks.

@sick("restarted")
def restarts_between_the_looks(ward):
    ward.servers(3)

    def restart():
        ward.processes[1].kill()
        ward.processes[1].wait()
        process = start_memcached(ward.paths[1])
        ward.stack.callback(ward.stop, process)
    ward.once(restart, 0.3)
    return pool(ward), {1}


def as_version(version):
    return lambda data: re.sub(rb"(VERSION|STAT version) 1\.[0-9.]+", rb"\1 " + version, data)


@sick("known_fault")
def old_release(ward):
    ward.server()
    return pool(ward, ward.relay(0, as_version(b"1.6.2"))), {1}


@sick("mixed_abilities")
def one_is_of_2014(ward):
    ward.servers(3)
    return pool(ward, 0, 1, ward.relay(2, as_version(b"1.4.20"))), {3}


@sick("clock_off")
def clock_is_behind(ward):
    ward.servers(2)
    ward.server(command=faked("-f", "-30s"))
    return pool(ward), {2}


@sick("clock_off")
def clock_is_ahead(ward):
    ward.server(command=faked("-f", "+1h"))
    return pool(ward), {0}


@sick("clock_here")
def all_but_we_agree(ward):
    for _ in range(3):
        ward.server(command=faked("-f", "+2h"))
    return pool(ward), None


@sick("clock_stands", interval="3s")
def clock_stands_still(ward):
    ward.servers(2)
    stamp = {}

    def change(data):
        at = data.find(b"STAT time ")
        if at >= 0:
            stamp.setdefault("time", data[at + 10:at + 20])
            data = data[:at + 10] + stamp["time"] + data[at + 20:]
        return data
    return pool(ward, 0, ward.relay(1, change)), {2}


# Settings.

@sick("stats_off")
def one_hides_its_statistics(ward):
    ward.servers(2)
    hidden = b"SERVER_ERROR not allowed\r\n"

    def serve(connection):
        with connection.makefile("rb") as file:
            for line in file:
                word = line.split()[0]
                connection.sendall({b"mn": b"MN\r\n", b"version": b"VERSION 1.6.18\r\n", b"stats": hidden}.get(word, b"ERROR\r\n"))
    ward.stub(serve)
    return pool(ward), {2}


@sick("flushed")
def somebody_flushes(ward):
    ward.servers(2)
    client = ward.client(0)
    ward.once(lambda: client.ask("flush_all\r\n"))
    return pool(ward), {0}


@sick("verbose")
def writes_each_request(ward):
    ward.server()
    path = ward.directory + "/m2"
    ward.program(["memcached", "-t", "1", "-vv", "-s", path], path)
    ward.paths.append(path)
    return pool(ward), {1}


@sick("udp_open")
def answers_udp(ward):
    port, = free_ports(1)
    ward.program(["memcached", "-t", "1", "-p", str(port), "-U", str(port)], port)
    return f"127.0.0.1:{port}", {f"127.0.0.1:{port}"}


@sick("proxy_among_servers")
def a_proxy_beside_servers(ward):
    ward.servers(2)
    ports = twemproxy(ward)
    return pool(ward) + f",127.0.0.1:{ports[0]}", {f"127.0.0.1:{ports[0]}"}


@sick("slow")
def a_proxy_that_answers_late(ward):
    """Its keys cannot be watched."""
    ward.servers(2)
    late = ward.relay(None, delay=0.03, port=twemproxy(ward)[0])
    return pool(ward, 0, 1, late), {late}


# Memory.

@sick("class_starves")
def pages_lie_idle(ward):
    ward.server()
    number = ward.server("-m", "8", "-o", "slab_automove=0,no_slab_reassign")
    client = ward.client(number)
    for at in range(0, 80000, 1000):
        client.ask(b"".join(store(f"small{at + n}", 40) for n in range(1000)), 1000)
    ward.load(number, lambda: b"".join(store(f"large{random.randrange(100000)}", 5000) for _ in range(20)), 20)
    return pool(ward), {number}


def fill(client, count, size, prefix="fill"):
    for at in range(0, count, 100):
        client.ask(b"".join(store(f"{prefix}{at + n}", size) for n in range(100)), 100)


for title, wanted_finding, numbers, flags in (
        ("evicts_what_is_in_use", "evicts_young", {1}, ()), ("evicts_what_was_never_read", "evicts_unfetched", {0}, ()),
        ("evicts_what_nobody_may_watch", "evicts_young", {1}, ("-W",))):
    @case_of(title, wanted_finding)
    def _(ward, numbers=numbers, flags=flags):
        ward.servers(2, "-m", "4", *flags)
        ward.options += ["--live"] if flags else []
        number, = numbers
        fill(ward.client(number), 1000, 5000)
        ward.load(number, lambda: b"".join(store(f"page{random.randrange(100000)}", 5000) for _ in range(20)), 20)
        return pool(ward), numbers

for title, wanted_finding, count in (("nearly_full", "full", 1500), ("was_full_once", "refused_before", 2000)):
    @case_of(title, wanted_finding)
    def _(ward, count=count):
        ward.servers(2, "-M", "-m", "8")
        fill(ward.client(1), count, 5000)
        return pool(ward), {1}


@sick("refuses_stores")
def full_and_refusing(ward):
    ward.servers(2, "-M", "-m", "4")
    fill(ward.client(0), 1500, 5000)
    ward.load(0, lambda: store(f"more{random.randrange(100000)}", 5000), 1)
    return pool(ward), {0}


@sick("too_large")
def stores_more_than_is_taken(ward):
    ward.servers(2)
    ward.load(0, store("big", 2 << 20), 1, pause=0.1)
    return pool(ward), {0}


# Connections.

@sick("connections_full")
def nobody_gets_in(ward):
    ward.server()
    number = ward.server("-c", "20")
    crowd(ward, number)
    return pool(ward), {number}


def crowd(ward, number):
    """Takes every connection that the server has."""
    turned_away = 0
    while turned_away < 5:
        try:
            ward.client(number).ask("version\r\n")
            turned_away = 0
        except OSError:
            turned_away += 1


@sick("connections_full")
def clients_are_turned_away(ward):
    ward.server()
    number = ward.server("-c", "20")
    held = [ward.client(number) for _ in range(12)]

    def act():
        more = []
        for _ in range(12):
            with contextlib.suppress(OSError):
                more.append(Client(ward.paths[number]))
        time.sleep(0.02)
        for client in more:
            client.close()
        time.sleep(0.1)
    ward.once(act)
    assert held
    return pool(ward), {number}


@sick("connections_high")
def few_connections_left(ward):
    ward.server("-c", "120")
    ward.server("-c", "120")
    for _ in range(105):
        ward.client(1)
    return pool(ward), {1}


@sick("connections_high")
def two_thousand_of_twenty_clients(ward):
    """Of which the three with the most are named, by the finding and by what it advises."""
    port, = free_ports(1)
    ward.program(["memcached", "-l", "127.0.0.1", "-p", str(port), "-c", "2400", "-t", "1"], port)
    for number in range(2, 22):
        for _ in range(195 if number == 7 else 95):
            one = socket.create_connection(("127.0.0.1", port), source_address=(f"127.0.0.{number}", 0))
            ward.stack.callback(one.close)
    server = f"127.0.0.1:{port}"
    _, findings, _, said = ward.doctor(server, "--only", "connections_high", interval="100ms")
    most = findings[0]["evidence"]["most_by_client"] if findings else said
    assert len(most) == 3 and most["127.0.0.7"] == 195, most
    lines = [json.loads(line) for line in run(("servers", "--clients"), server).splitlines()]
    assert lines[0]["client"] == "127.0.0.7" and len(lines) >= 20 and sum(line["connections"] for line in lines) >= 2000, lines[:3]
    return server, {server}


@sick("connections_ran_out")
def ran_out_before(ward):
    ward.servers(2, "-c", "20")
    clients = [Client(ward.paths[0]) for _ in range(30)]
    for client in clients:
        client.close()
    wait_for_room(ward.paths[0])
    return pool(ward), {0}


def wait_for_room(path):
    """Until the server has seen that its clients have left."""
    for _ in range(500):
        with contextlib.suppress(OSError), contextlib.closing(Client(path)) as client:
            client.ask("version\r\n")
            return
        time.sleep(0.01)


@sick("connects_per_request")
def a_connection_for_each_request(ward):
    ward.servers(2)

    def act():
        client = Client(ward.paths[0])
        client.ask("get a\r\n")
        client.close()
        time.sleep(0.002)
    ward.meanwhile(act)
    return pool(ward), {0}


# Load.

@sick("busy")
def threads_are_busy(ward):
    """A real one gets no more of a processor than others on this machine leave it."""
    ward.servers(2)

    def change(data):
        at = data.find(b"STAT rusage_user ")
        if at >= 0:
            end = data.index(b"\r", at)
            data = data[:at] + b"STAT rusage_user %.6f" % time.monotonic() + data[end:]
        return data
    return pool(ward, 0, ward.relay(1, change)), {2}


for title, reads, numbers in (("one_key_is_hot", (4, 40, 4), {1}), ("one_is_in_no_client_s_list", (20, 20, 20, 0), {3})):
    @case_of(title, "load_uneven")
    def _(ward, reads=reads, numbers=numbers):
        for number, count in enumerate(reads):
            ward.server()
            if count:
                ward.load(number, "get a\r\n" * count, count)
        return pool(ward), numbers


@sick("hit_ratio_falls")
def everything_misses_suddenly(ward):
    ward.servers(2)
    client = ward.client(0)
    client.ask(store("a"))
    client.ask("get a\r\n" * 3000, 3000)
    ward.load(0, "get gone\r\n" * 40, 40)
    return pool(ward), {0}


@sick("hit_ratio_differs")
def one_misses_more(ward):
    ward.servers(3)
    for number in range(3):
        ward.client(number).ask(store("a"))
        ward.load(number, ("get gone\r\n" if number == 2 else "get a\r\n") * 40, 40)
    return pool(ward), {2}


# Placement, and keys.

@sick("weights_ignored")
def weights_that_the_client_ignores(ward):
    ward.servers(2)
    ward.options += ["--as", "gomemcache"]
    return f"unix:{ward.paths[0]}/?3,unix:{ward.paths[1]}/?1", None


@sick("repeated_server")
def listed_twice(ward):
    ward.servers(2)
    return pool(ward, 0, 1, 0), {0}


def keys_of(ward, place):
    clients = [ward.client(number) for number in range(len(ward.paths))]
    for at, key in enumerate(MANY_KEYS):
        for number in place(at):
            clients[number].ask(store(key))


@sick("misplaced")
def another_client_s_keys(ward):
    ward.servers(3)
    keys_of(ward, lambda at: [at % 3])
    ward.options += ["--live"]
    return pool(ward), {0, 1, 2}


@sick("duplicated")
def keys_in_two_places(ward):
    ward.servers(2)
    keys_of(ward, lambda at: [0, 1])
    ward.options += ["--live"]
    return pool(ward), None


@sick("divergent")
def two_values_of_a_key(ward):
    ward.servers(2)
    ward.client(1).ask(store("key:0", 5))
    ward.client(0).ask(store("key:0", 7))
    ward.options += ["--live"]
    return pool(ward), None


@sick("watch_off")
def one_cannot_be_watched(ward):
    ward.servers(1)
    ward.server("-W")
    ward.options += ["--live"]
    return pool(ward), {1}


@sick("endless_lock")
def a_lock_for_ever(ward):
    ward.server()
    ward.client().ask(store("lock:nightly", 30))
    ward.options += ["--live"]
    return pool(ward), {0}


@sick("endless_lock")
def a_lock_of_two_copies_for_ever(ward):
    """Its number of copies stands in its value alone."""
    ward.servers(2)
    value = b'0123456789abcdef {"host":"h","pid":1,"copies":2}'
    for number in range(2):
        ward.client(number).ask(b"set lock:nightly 0 0 %d\r\n%s\r\n" % (len(value), value))
    ward.options += ["--live"]
    return pool(ward), {0, 1}


@sick("no_crawler")
def keys_cannot_be_listed(ward):
    """Until the crawler is on, as its own finding advises, which stands before."""
    ward.servers(2, "-o", "no_lru_crawler")
    ward.options += ["--live"]
    return pool(ward), {0, 1}


@sick("detail_on")
def statistics_by_prefix_behind_a_login(ward):
    passwords(ward, "secret", "secret")
    ward.servers(2, "-Y", ward.directory + "/users")
    ward.client(1).ask("set x 0 0 9\r\nme secret\r\nstats detail on\r\n", 2)
    return pool(ward), {1}


@sick("two_numbers_of_copies")
def copies_of_two_kinds(ward):
    ward.servers(2)
    for key in ("hash:cfg:i", "hash2:cfg:i"):
        ward.client(1).ask(store(key, 30))
    ward.options += ["--live"]
    return pool(ward), {1}


@sick("evicts_structures")
def a_lock_that_may_be_evicted(ward):
    ward.server("-m", "4")
    run(("lock", "acquire", "nightly", "--ttl", "1h"), pool(ward))
    fill(ward.client(), 1000, 5000)
    client = ward.client()

    def page():
        return b"".join(store(f"page{random.randrange(100000)}", 5000) for _ in range(20)) + b"get lock:nightly\r\n"
    ward.load(0, page, 21)
    assert client
    ward.options += ["--live"]
    return pool(ward), {0}

# What operators meet: other services, doors to several servers, programs that sleep.

def program_on_a_port(ward, *command):
    """Beside two servers, something that is not memcached."""
    ward.servers(2)
    port, = free_ports(1)
    ward.program([word.replace("PORT", str(port)) for word in command], port, cwd=ward.directory)
    return pool(ward) + f",127.0.0.1:{port}", {f"127.0.0.1:{port}"}


@sick("wrong_service")
def a_web_server_in_the_list(ward):
    return program_on_a_port(ward, sys.executable, "-m", "http.server", "--bind", "127.0.0.1", "PORT")


@sick("wrong_service")
def tls_asked_of_a_server_in_clear(ward):
    authority = Authority(ward.directory, "ca")
    port = tls_server(ward, authority.certificate("s", "IP:127.0.0.1", days=90))
    clear, = free_ports(1)
    ward.program(["memcached", "-t", "1", "-l", "127.0.0.1", "-p", str(clear), "-U", "0"], clear)
    ward.options += ["--tls-ca", authority.file]
    return f"tls://127.0.0.1:{port},tls://127.0.0.1:{clear}", {f"127.0.0.1:{clear}"}


@sick("handshakes_fail")
def a_client_without_tls(ward):
    authority = Authority(ward.directory, "ca")
    ports = [tls_server(ward, authority.certificate(f"s{n}", "IP:127.0.0.1", days=90)) for n in range(2)]
    ward.options += ["--tls-ca", authority.file]

    def act():
        client = Client(ports[1])
        with contextlib.suppress(OSError):
            client.socket.sendall(b"get a\r\n")
            client.socket.recv(100)
        client.close()
        time.sleep(0.05)
    ward.meanwhile(act)
    return ",".join(f"tls://127.0.0.1:{port}" for port in ports), {f"127.0.0.1:{ports[1]}"}


@sick("several_addresses")
def a_name_with_two_addresses(ward):
    port, = free_ports(1)
    ward.program(["memcached", "-t", "1", "-l", f"127.0.0.1:{port},127.0.0.2:{port}", "-U", "0"], port)
    ward.hosts("127.0.0.1 cache.test", "127.0.0.2 cache.test")
    return f"cache.test:{port}", {f"cache.test:{port}"}


@sick("same_server")
def one_server_by_name_and_by_address(ward):
    port, = free_ports(1)
    ward.program(["memcached", "-t", "1", "-l", "127.0.0.1", "-p", str(port), "-U", "0"], port)
    ward.hosts("127.0.0.1 cache.test")
    return f"cache.test:{port},127.0.0.1:{port}", {f"cache.test:{port}", f"127.0.0.1:{port}"}


@sick("unresolved")
def a_name_without_an_address(ward):
    ward.servers(1)
    ward.hosts("127.0.0.1 localhost")
    return pool(ward) + ",gone.invalid:11211", {"gone.invalid:11211"}


@sick("balancer")
def servers_behind_a_balancer(ward):
    """A name of Kubernetes or haproxy in the list: each connection ends at another server."""
    ward.servers(3)
    time.sleep(3)  # a server that is younger than the looks was restarted
    return pool(ward, 0, ward.balancer(1, 2)), {3}


@sick("idle_connections")
def connections_that_nobody_uses(ward):
    """Time runs 3,600 times as fast there."""
    ward.server()
    ward.server("-c", "1024", command=faked("-f", "+0 x3600"))
    held = [ward.client(1) for _ in range(150)]
    for client in held:
        client.ask("version\r\n")
    time.sleep(2)
    ward.options += ["--connections"]
    return pool(ward), {1}


@sick("slow")
def one_sleeps_every_other_moment(ward):
    """As on a machine that swaps, or whose processor is taken away."""
    ward.servers(3)

    def act():
        for number in (signal.SIGSTOP, signal.SIGCONT):
            ward.processes[2].send_signal(number)
            time.sleep(0.05 if number == signal.SIGSTOP else 0.001)
    ward.meanwhile(act)
    return pool(ward), {2}


@sick("class_starves")
def only_one_size_is_evicted(ward):
    """Nothing else is asked for; the pages of the other sizes stay where they are."""
    ward.server()
    number = ward.server("-m", "16", "-o", "slab_automove=0")
    client = ward.client(number)
    fill(client, 20000, 400, "small")
    fill(client, 400, 20000, "large")
    client.ask(b"".join(f"delete small{n} noreply\r\n".encode() for n in range(20000)) + b"version\r\n", 1)
    ward.load(number, lambda: b"".join(store(f"large{random.randrange(100000)}", 20000) for _ in range(5)), 5)
    return pool(ward), {number}


@sick("hash_crowded")
def a_table_that_does_not_grow(ward):
    ward.server()
    number = ward.server("-o", "hashpower=12,no_hashexpand")
    fill(ward.client(number), 20000, 10)
    return pool(ward), {number}


@sick("yields")
def batches_that_are_too_long(ward):
    ward.server()
    number = ward.server("-R", "2")
    ward.load(number, b"get a\r\n" * 100, 100)
    return pool(ward), {number}


@sick("nothing_hits")
def times_to_live_of_31_days(ward):
    """Which the server takes for a day of January 1970."""
    ward.servers(2)
    for number in range(2):
        ward.load(number, b"".join(store(f"page{n}", ttl=31 * 86400) for n in range(10)) + b"get page1\r\n" * 10, 20)
    return pool(ward), {0, 1}


@sick("near_size_limit")
def an_array_that_is_nearly_full(ward):
    ward.servers(2, "-I", "512k")
    lines = "".join(f"{n:04}{'x' * 7996}\n" for n in range(61))
    run(("array", "add", "jobs", "-", "--encoding", "json"), pool(ward), lines)
    ward.options += ["--live"]
    return pool(ward), {placed_on(ward, ("array", "where", "jobs"))}


def server_of(ward, key):
    """Where this key is."""
    for number in range(len(ward.paths)):
        if ward.client(number).ask(f"get {key}\r\n")[0].startswith(b"VALUE"):
            return number
    raise AssertionError(f"no server has {key}")


def without(ward, key):
    """As if this key were evicted. Those that were used in the last seconds show nothing."""
    ward.client(server_of(ward, key)).ask(f"delete {key}\r\n")
    time.sleep(5)
    ward.options += ["--live"]
    return pool(ward), None


@sick("lost_parts")
def a_shard_of_an_index_is_gone(ward):
    ward.servers(3)
    run(("hash", "set", "cfg", "-"), pool(ward), "".join(f"field{n}\tvalue\n" for n in range(300)))
    return without(ward, "hash:cfg:i:7")


@sick("lost_parts")
def a_part_of_a_log_is_gone(ward):
    ward.servers(3)
    run(("eventlog", "put", "log", "-", "--chunk", "1h"), pool(ward), "".join(f"{n:06}{'x' * 2000}\n" for n in range(2000)))
    key, = (key for key in run(("item", "list", "--prefix", "eventlog:log:", "-o", "value"), pool(ward)).split() if key.endswith(".1"))
    return without(ward, key)


@sick("lost_parts")
def an_array_without_its_beginning(ward):
    ward.servers(3)
    run(("array", "add", "jobs", "-"), pool(ward), "".join(f"{n:06}{'x' * 2000}\n" for n in range(2000)))
    return without(ward, "array:jobs")


@sick("duplicated")
def a_move_whose_old_copies_were_left(ward):
    ward.servers(3)
    run(("item", "load", "-"), pool(ward, 0, 1), "".join(f"add key:{n} 0 0 1\r\nx\r\n" for n in range(300)))
    run(("hash", "set", "cfg", "-"), pool(ward, 0, 1), "".join(f"field{n}\tvalue\n" for n in range(300)))
    run(("ring", "move", "--to", pool(ward)), pool(ward, 0, 1))
    ward.options += ["--live"]
    return pool(ward), {0, 1}


def run(words, pool_of, given=None):
    """What it printed."""
    return subprocess.run([MCDS, "-s", pool_of, *words], input=given, capture_output=True, text=True, check=False, timeout=60).stdout


def placed_on(ward, words):
    said = run((*words, "-o", "value"), pool(ward)).strip()
    return ward.names().index(said)


# Healthy.

@healthy
def refuse_on_purpose(ward):
    ward.servers(2, "-M", "-m", "64")
    fill(ward.client(0), 1000, 1000)
    return pool(ward)


@healthy
def weights_on_purpose(ward):
    ward.server("-m", "64")
    ward.server("-m", "128", "-c", "2048")
    return f"unix:{ward.paths[0]}/?1,unix:{ward.paths[1]}/?2"


@healthy
def all_by_tls(ward):
    authority = Authority(ward.directory, "ca")
    ports = [tls_server(ward, authority.certificate(f"s{n}", "IP:127.0.0.1,DNS:localhost", days=90)) for n in range(2)]
    ward.options += ["--tls-ca", authority.file]
    return ",".join(f"tls://127.0.0.1:{port}" for port in ports)


def twemproxy(ward, count=1):
    ports = free_ports(count)
    with open(ward.directory + "/nutcracker.yml", "w", encoding="utf-8") as file:
        for number, port in enumerate(ports):
            file.write(f"p{number}:\n  listen: 127.0.0.1:{port}\n  hash: md5\n  distribution: ketama\n  servers:\n")
            file.writelines(f"   - {path}:1 m{at}\n" for at, path in enumerate(ward.paths))
    if not ward.paths:
        raise AssertionError("twemproxy needs servers")
    ward.program([shutil.which("nutcracker") or "/usr/sbin/nutcracker", "-c", ward.directory + "/nutcracker.yml", "-a", "127.0.0.1", "-s",
                  str(free_ports(1)[0])], ports[0])
    return ports


@healthy
def behind_twemproxy(ward):
    ward.servers(2)
    return f"127.0.0.1:{twemproxy(ward)[0]}"


@healthy
def one_name_in_two_namespaces(ward):
    ward.server()
    for prefix, number in (("", ""), ("app:", "2")):
        for key in ("table%s:x:i", "array%s:y", "counter%s:z"):
            ward.client().ask(store(prefix + key % number, 30))
    ward.client().ask(store("app:lock:nightly", 30))  # which never ends: the advice would release ours
    ward.options += ["--live"]
    return pool(ward)


@healthy
def another_applications_keys_beside_a_namespace(ward):
    ward.servers(3)
    run(("--namespace", "app:", "item", "load", "-"), pool(ward), "".join(f"add app:{n} 0 0 1\r\nx\r\n" for n in range(100)))
    run(("--as", "pymemcache", "item", "load", "-"), pool(ward), "".join(f"add other:{n} 0 0 1\r\nx\r\n" for n in range(300)))
    ward.options += ["--live", "--namespace", "app:"]
    return pool(ward)


@healthy
def two_patch_versions(ward):
    ward.servers(3)
    # All behind a relay: one that alone has it takes longer to answer than the others.
    return pool(ward, *(ward.relay(number, as_version(version)) for number, version in enumerate((b"1.6.30", b"1.6.30", b"1.6.31"))))


@healthy
def full_but_quiet(ward):
    ward.servers(2, "-m", "4")
    for number in range(2):
        fill(ward.client(number), 2000, 5000)
    return pool(ward)


@healthy
def logged_in(ward):
    passwords(ward, "secret", "secret")
    ward.servers(2, "-Y", ward.directory + "/users")
    return pool(ward)


@healthy
def copies_whose_keys_do_not_say_it(ward):
    ward.servers(3)
    run(("item", "load", "-"), pool(ward), "".join(f"add key:{n} 0 0 1\r\nx\r\n" for n in range(300)))
    for words in (("cache", "run", "c", "--", "echo", "x"), ("visitors", "hit", "v", "--id", "7"), ("visitors", "hit", "w", "--id", "8")):
        run(("--copies", "2", *words), pool(ward))
    for number in range(3):
        ward.client(number).ask(store("lock:l", ttl=600) + store("lock:l:fence") + store("lockserver:votes:30"))
    ward.options += ["--live"]
    return pool(ward)


@healthy
def an_application_s_keys_of_such_names(ward):
    ward.servers(1)
    ward.client().ask(store("account:lock:5") + store("app:table:u:v:1") + store("shop:array:x:s:0123456789abcdef"))
    ward.options += ["--live"]
    return pool(ward)


@healthy
def under_a_fair_load(ward):
    ward.servers(3)
    for number in range(3):
        ward.client(number).ask(store("a"))
        ward.load(number, b"get a\r\n" * 18 + b"get b\r\n" * 2 + store("c"), 21)
    return pool(ward)


@healthy
def our_own_structures(ward):
    ward.servers(3)
    all_of_it = pool(ward)
    for words in (("lock", "acquire", "a", "--ttl", "1m"), ("counter", "incr", "hits"), ("hash", "set", "cfg", "a", "b"),
                  ("array", "add", "jobs", "x"), ("eventlog", "put", "log", "e"), ("table", "add", "t", "m"),
                  ("visitors", "hit", "site"), ("--copies", "3", "hash", "set", "three", "a", "b")):
        run(words, all_of_it)
    for number in range(0, 300, 30):
        run(("item", "set", f"key:{number}", "x"), all_of_it)
    ward.options += ["--live"]
    return all_of_it


@healthy
def elements_of_any_bytes(ward):
    """Each was taken for lost: its shard was told by the encoded name."""
    ward.servers(2)
    odd = [chr(code) for code in (*range(1, 10), *range(11, 13), *range(14, 128), 0xe9, 0x65e5, 0x1f600)]
    elements = [*odd, *(f"a{one}{other}" for one, other in zip(odd, reversed(odd))), "10.0.0.1:8080", "http://example.org/a?b=1", "~x", "x" * 300]
    for name in ("urls", "n:v:x", "n:i:3", "v:v:v"):
        run(("table", "add", name, "-"), pool(ward), "".join(element + "\n" for element in elements))
        run(("hash", "set", name, "-"), pool(ward), "".join(element + "\tx\n" for element in elements if "\t" not in element))
    time.sleep(3.2)  # keys that were just used show nothing
    ward.options += ["--live"]
    return pool(ward)


@healthy
def emptied_a_moment_ago(ward):
    """Which is told of as a note."""
    ward.servers(2)
    ward.client(0).ask("flush_all\r\n")
    time.sleep(2)
    return pool(ward)


@healthy
def items_that_expire(ward):
    ward.servers(2)
    ward.client(0).ask(b"".join(store(key, ttl=1) for key in MANY_KEYS), len(MANY_KEYS))
    return pool(ward)


@healthy
def in_the_classic_protocol(ward):
    ward.servers(2)
    ward.options += ["--protocol", "classic"]
    return pool(ward)


def bad(finding):
    return finding["severity"] != "note"


def try_sick(name, directory):
    case, wanted, interval = SICK[name]
    with Ward(directory) as ward:
        servers, expected = case(ward)
        for _ in range(5 if wanted == "slow" else 1):  # on a busy machine all servers may be as slow as this one
            status, findings, last, said = ward.doctor(servers, interval=interval)
            own = [finding for finding in findings if finding["finding"] == wanted and bad(finding)]
            if own:
                break
        shown = "\n  ".join([str(finding) for finding in findings] + [str(last), said])
        yield bool(own) and status == 2, f"{name}: {wanted} is not found, exit {status}\n  {shown}"
        if own and expected is not None:
            addresses = {"unix:" + ward.paths[one] if isinstance(one, int) else one for one in expected}
            yield set().union(*(finding["servers"] for finding in own)) == addresses, f"{name}: {wanted} elsewhere\n  {shown}"
        if wanted == "several_addresses":
            yield all(finding["advice"].endswith("dns:" + servers) for finding in own), f"{name}: the advice loses the port\n  {shown}"
        yield last.get("trips", 99) <= 16, f"{name}: {last.get('trips')} trips\n  {shown}"
        listed = {part.split("=")[-1].split("/?")[0].removeprefix("tls://") for part in servers.split(",")}
        for finding in findings:
            for command, status, printed, asked in ward.follow(finding["advice"]):
                FOLLOWED.append(bool(asked))
                refused = status in {65, 76} and re.search("keys cannot be (watched|listed)|use --copies", printed)
                yield (status not in BROKEN and not refused and asked <= listed,
                       f"{name}: of {finding['finding']} the advice {command} ends with {status}, asks {asked - listed}: {printed[:600]}")
        if len(expected or ()) == 1 and any("| nc " in finding["advice"] for finding in own):
            _, left, _, _ = ward.doctor(servers, "--only", wanted, interval="100ms")
            yield not any(map(bad, left)), f"{name}: is there after its advice was followed: {left}"


def try_healthy(name, directory):
    with Ward(directory) as ward:
        servers = HEALTHY[name](ward)
        status, findings, last, said = ward.doctor(servers)
        yield (status == 0 and not any(map(bad, findings)) and said == "",
               f"{name}: exit {status}\n  " + "\n  ".join(map(str, [*findings, last, said])))
        yield last.get("trips", 99) <= 16, f"{name}: {last.get('trips')} trips"


def a_server_is_asked_no_more_than_16_times(directory):
    """Counted where the requests arrive, with everything that can be asked for."""
    with Ward(directory) as ward:
        ward.servers(2)
        ward.options += ["--connections"]
        _, _, last, _ = ward.doctor(pool(ward, 0, ward.relay(1)))
        check(0 < ward.bursts <= 16 and last["trips"] <= 16, f"{ward.bursts} trips arrived, {last}")


def metrics_are_well_formed(directory):
    """Each family once, with its help and type before its samples, counters called so, no sample twice, labels in quotes."""
    sample = re.compile(r'([a-z_:]+)(?:\{((?:[a-z_]+="(?:[^"\\\n]|\\[\\"n])*",?)*)\})? (-?[0-9.e+-]+)')
    with Ward(directory) as ward:
        ward.servers(2)
        for words in (("servers",), ("doctor", "--for", "100ms")):
            command = [MCDS, "-s", pool(ward) + ",unix:/nowhere/a\"b\\c", *words, "-o", "openmetrics"]
            text = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60).stdout
            lines, family, known, seen = text.splitlines(), None, set(), set()
            check(bool(lines) and lines[-1] == "# EOF" and text.endswith("\n"), f"{words}: ends with {lines[-1:]}")
            for line, after in zip(lines[:-1], lines[1:]):
                if line.startswith("# HELP "):
                    family = line.split()[2]
                    check(family not in known and re.fullmatch(rf"# TYPE {family} (gauge|counter)", after) is not None, f"{words}: {line} / {after}")
                    check(after.endswith("counter") == family.endswith("_total"), f"{words}: {after}")
                    known.add(family)
                elif not line.startswith("# TYPE "):
                    found = sample.fullmatch(line)
                    check(found is not None and found[1] == family and (found[1], found[2]) not in seen, f"{words}: {line}")
                    seen.add(found and (found[1], found[2]))


def text_has_one_order(directory):
    """Ten looks at one mixed pool name the same findings under the same servers, the worst first, and end with what to do first."""
    with Ward(directory) as ward:
        ward.server("-m", "4")
        ward.server("-C", "-c", "60")
        ward.server()
        texts = set()
        for _ in range(10):
            command = [MCDS, "-s", pool(ward) + ",unix:/nowhere/m", "doctor", "--for", "100ms", "--skip", "slow", "-o", "text"]
            lines = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60).stdout.splitlines()
            texts.add("\n".join(line for line in lines if re.match(r"\S|  \S", line)))
            long = [line for line in lines if len(line) > 80 and "mcds " not in line]
            check(not long, f"wider than 80 columns: {long}")
        check(len(texts) == 1, "\n---\n".join(texts))
        text = texts.pop()
        check(text.startswith("unix:/nowhere/m\n  problem: down\n") and text.splitlines()[-1].startswith("Begin with down on unix:/nowhere/m: "),
              text)


def attempt(name):
    """A look of a second sees something else on a machine whose cores others use: the last one must be right."""
    for _ in range(ATTEMPTS):
        with tempfile.TemporaryDirectory() as directory:
            try:
                seen = list((try_sick if name in SICK else try_healthy)(name, directory))
            except Exception as error:  # of the case: the others go on
                seen = [(False, f"{name}: {type(error).__name__}: {error}")]
        if all(good for good, _ in seen):
            break
    for good, message in seen:
        check(good, message)


def a_class_that_refuses_is_not_idle(directory):
    """One size fills the server, and its stores are refused: no other class has pages that lie idle."""
    with Ward(directory) as ward:
        number = ward.server("-m", "8", "-M", "-o", "slab_automove=0")
        fill(ward.client(number), 40000, 200)
        ward.load(number, lambda: store("more", 200), 1)
        done = subprocess.run([MCDS, "-s", pool(ward), "doctor", "--for", "1s", "--only", "class_starves"], capture_output=True,
                              text=True, check=False, timeout=60)
        check('"finding":"class_starves"' not in done.stdout and done.returncode == 0, done.stdout)


def an_advice_fits_the_pool(directory):
    """Weights are advised only to clients that know them, and no password is printed."""
    with Ward(directory) as ward:
        ward.server("-m", "64")
        ward.server("-m", "256")
        for profile, weights in (("ketama", True), ("gomemcache", False)):
            _, findings, _, said = ward.doctor(pool(ward), "--as", profile, "--only", "weights_against_memory", interval="100ms")
            check(len(findings) == 1 and ("weights" in findings[0]["advice"]) == weights, f"{profile}: {findings} {said}")
    with Ward(directory) as ward:
        servers, _ = statistics_by_prefix_behind_a_login(ward)
        _, findings, _, said = ward.doctor(servers, "--only", "detail_on", interval="100ms")
        check([finding["advice"] for finding in findings] == ["log in there, then send stats detail off"], f"{findings} {said}")


def a_silent_server_costs_live_no_timeout_for_each_trip(directory):
    """A thousand keys that two others list are compared in many trips."""
    with Ward(directory) as ward:
        ward.servers(3)
        for number in range(2):
            ward.client(number).ask(b"".join(store(f"both:{n}") for n in range(1000)), 1000)
        ward.processes[2].send_signal(signal.SIGSTOP)
        begun = time.monotonic()
        _, findings, _, said = ward.doctor(pool(ward), "--live", "--only", "silent,duplicated", interval="100ms")
        took = time.monotonic() - begun
        check(took < 20 and {finding["finding"] for finding in findings} == {"silent", "duplicated"}, f"{took:.1f} s: {findings} {said}")


def a_baseline_has_each_setting_by_itself(directory):
    """What is known of a server hides no other setting of it that differs."""
    def found():
        _, lines, error = answers(servers.list, "doctor", "--for", "100ms", "--only", "drift", "--baseline", os.path.join(directory, "known"))
        return {line["evidence"]["setting"] for line in lines if line.get("finding") == "drift"}, error

    with Servers(2) as servers:
        for flags, expected in (("-t 8", {"num_threads"}), ("-t 8", set()), ("-t 8 -C", {"cas_enabled"}), ("-t 8 -C", set())):
            end(servers.processes[1])
            servers.processes[1] = start_memcached(servers.paths[1], *flags.split())
            settings, error = found()
            check(settings == expected and error == "", f"{flags}: {settings} {error}")


def main():
    names = sys.argv[2:] or [*SICK, *HEALTHY]
    with concurrent.futures.ThreadPoolExecutor(6) as threads:
        list(threads.map(attempt, names))
    for test in (a_server_is_asked_no_more_than_16_times, metrics_are_well_formed, text_has_one_order,
                 a_class_that_refuses_is_not_idle, an_advice_fits_the_pool, a_baseline_has_each_setting_by_itself,
                 a_silent_server_costs_live_no_timeout_for_each_trip):
        with tempfile.TemporaryDirectory() as directory:
            test(directory)
    if not sys.argv[2:]:
        check(sum(FOLLOWED) >= 100, f"{len(FOLLOWED)} commands were followed, and {sum(FOLLOWED)} of them asked a server")
    check(len(SICK) >= 30 and len(HEALTHY) >= 12, "fewer pools than there were")
    finish()


if __name__ == "__main__":
    main()
