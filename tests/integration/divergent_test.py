#!/usr/bin/env python3
"""A server was away, two live clients went around it, and it is back with older values: nothing that removes decides between the two.

Usage: divergent_test.py BUILD_DIR

The clients are pymemcache's, which write elsewhere while a server does not answer. The table verdict × what is done of mcds-where(1)
is tried cell by cell.
"""
import os
import random
import shlex
import signal
import subprocess
import sys
import time
from contextlib import ExitStack, suppress

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
sys.path.append("/usr/lib/python3/dist-packages")
from checks import check, finish
from proxy import Proxy
from pymemcache.client.hash import HashClient
from program import MCDS, answers, environment, run
from real_servers import Servers, ask, end, items, start_memcached, store

PROFILE = "pymemcache-rendezvous"


class Pool:
    def __init__(self, stack, servers=3, *flags):
        started = stack.enter_context(Servers(servers, *flags))
        self.directory, self.paths, self.processes, self.list = started.directory, started.paths, started.processes, started.list
        self.clients = [HashClient(self.paths, connect_timeout=1, timeout=1, retry_attempts=0, dead_timeout=0.2, ignore_exc=False,
                                   default_noreply=False) for _ in range(2)]
        stack.callback(self.disconnect)

    def disconnect(self):
        for client in self.clients:
            client.close()

    def away(self, number):
        """No new connection reaches it, and its memory stays."""
        self.disconnect()
        os.rename(self.paths[number], self.paths[number] + ".away")

    def back(self, number):
        self.disconnect()
        os.rename(self.paths[number] + ".away", self.paths[number])
        time.sleep(0.25)
        for client in self.clients:
            client.get("other:0")  # looks for dead servers

    def restart(self, number, *flags):
        end(self.processes[number])
        self.processes[number] = start_memcached(self.paths[number], *flags)

    def write(self, keys, value):
        """By both clients in turn; one that meets a dead server tries again elsewhere."""
        for number, key in enumerate(keys):
            client = self.clients[number % 2]
            for attempt in range(4):
                try:
                    check(client.set(key, value), f"{key} is not stored")
                    break
                except OSError:
                    check(attempt < 3, f"{key}: no server")

    def read(self, keys):
        found = {}
        for number, key in enumerate(keys):
            for attempt in range(4):
                try:
                    found[key] = self.clients[number % 2].get(key)
                    break
                except OSError:
                    check(attempt < 3, f"{key}: no server")
        return found

    def run(self, *words, stdin=None, profile=PROFILE):
        return answers(self.list, "--as", profile, *words, input=stdin, cwd=self.directory)

    def store(self, number, key, value, flags=0):
        store(self.paths[number], key, value, flags)

    def copies(self, value):
        return sum(found.startswith(value.encode() + b"\r\n") for _, found in items(self.paths).values())

    def owned_by(self, number, prefix, count):
        """So many keys whose place is this server."""
        status, lines, error = self.run("where", "-", stdin="\n".join(f"{prefix}{i}" for i in range(100 + count * len(self.paths) * 2)))
        check(status == 0, f"where: {status} {error}")
        return [line["key"] for line in lines if line["index"] == number][:count]


def outage(pool, count=40):
    """The keys of server 2, which has v1 of all; v2 is elsewhere."""
    pool.write([f"other:{i}" for i in range(300)], "o")
    keys = pool.owned_by(2, "app:", count)
    pool.write(keys, "v1")
    pool.away(2)
    pool.write(keys, "v2")
    pool.back(2)
    check(set(pool.read(keys).values()) == {b"v1"}, "the server is not back with its older values")
    check(pool.copies("v2") == len(keys), f"{pool.copies('v2')} newer values")
    return keys


def prune_keeps_the_newest():
    with ExitStack() as stack:
        pool = Pool(stack)
        keys = outage(pool)
        same = pool.owned_by(0, "same:", 10)
        for key in same:
            pool.store(0, key, "x")
            pool.store(1, key, "x")
        for given in (["--live", "--list"], ["-"]):
            status, lines, error = pool.run("where", "--prune", "--yes", *given, stdin="\n".join(keys))
            check(status == 2 and error == "", f"{given}: {status} {error}")
            named = {line["key"] for line in lines if line.get("verdict") == "divergent"}
            check(named == set(keys), f"{given}: {len(named)} divergent keys are named")
            check(pool.copies("v2") == len(keys) and pool.copies("v1") == len(keys), f"{given}: {pool.copies('v2')} newer values are left")
        status, lines, error = pool.run("where", "--prune", "--live", "--yes")
        check(lines[-1]["kept"].get("differs") == len(keys) and lines[-1]["verdicts"]["divergent"] == len(keys), f"{lines}")
        check(all((1, key.encode()) not in items(pool.paths) for key in same), "copies with the same value stay")
        check(all((0, key.encode()) in items(pool.paths) for key in same), "the last copies went")


def advice_of_the_doctor():
    with ExitStack() as stack:
        pool = Pool(stack)
        keys = outage(pool)
        status, lines, error = pool.run("doctor", "--for", "100ms", "--live")
        found = {line["finding"]: line for line in lines if "finding" in line}
        check(status == 2 and found["divergent"]["severity"] == "problem" and "duplicated" not in found, f"{status} {list(found)} {error}")
        check(found["divergent"]["evidence"]["divergent"] == len(keys), f"{found['divergent']}")
        advice = found["divergent"]["advice"]
        words = shlex.split(advice[advice.index("mcds --as"):])
        check(words[-1] == "--dry-run" and {"--as", "--prefix", "--divergent"} <= set(words) and words[4] == pool.list, advice)
        status, lines, error = pool.run(*words[5:])
        check(status == 2 and lines[-1]["would_remove"] == 2 * len(keys) and pool.copies("v1") == len(keys), f"dry run: {status} {lines} {error}")
        status, lines, error = pool.run(*words[5:-1], "--yes")
        check(status == 0 and lines[-1]["removed"] == 2 * len(keys), f"{words}: {status} {lines} {error}")
        check(set(pool.read(keys).values()) == {None}, "after the drop: old values are read")
        pool.away(2)
        check(set(pool.read(keys).values()) == {None}, "at the next outage: old values are read")
        pool.back(2)
        status, lines, error = pool.run("doctor", "--for", "100ms", "--live", "--only", "divergent,duplicated,misplaced")
        check(status == 0 and len(lines) == 1, f"afterwards: {lines} {error}")


def duplicates_are_pruned_as_advised():
    with ExitStack() as stack:
        pool = Pool(stack)
        pool.write([f"other:{i}" for i in range(300)], "o")
        for key in pool.owned_by(2, "app:", 40):
            pool.store(2, key, "x")
            pool.store(0, key, "x")
        status, lines, error = pool.run("doctor", "--for", "100ms", "--live", "--only", "divergent,duplicated")
        check(status == 2 and [line.get("finding") for line in lines] == ["duplicated", None], f"{status} {lines} {error}")
        advice = lines[0]["advice"]
        words = shlex.split(advice[advice.index("mcds --as"):])
        status, lines, error = pool.run(*words[5:-1], "--yes")
        check(status == 0 and lines[-1]["removed"] == 40, f"{words}: {status} {lines} {error}")


def interrupted_drop():
    """Killed at each request that it sends, then repeated with its journal."""
    drop = ["--as", PROFILE, "where", "--prune", "--live", "--yes", "--divergent", "drop", "--journal", "j"]
    seen = set()
    with ExitStack() as stack:
        pool = Pool(stack)
        keys = outage(pool, 3)
        for step in range(1, 200):
            for key in keys:
                pool.store(2, key, "v1")
                pool.store(1, key, "v2")
            done = subprocess.run(["strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=sendto,sendmsg,write,writev", "-e",
                                   f"inject=sendto,sendmsg,write,writev:signal=KILL:when={step}", MCDS, "-s", pool.list, *drop],
                                  cwd=pool.directory, capture_output=True, timeout=60, check=False)
            left = items(pool.paths)
            for key in keys:
                newer = [where for where, (_, value) in left.items() if where[1] == key.encode() and value.startswith(b"v2")]
                check(newer or (2, key.encode()) not in left, f"killed at {step}: of {key} the older value alone is left")
            seen.add(pool.copies("v1"))
            status, lines, error = pool.run(*drop[2:])
            check(status == 0 and pool.copies("v1") == pool.copies("v2") == 0, f"killed at {step}, again: {status} {lines} {error}")
            os.unlink(os.path.join(pool.directory, "j"))
            if done.returncode == 0:
                break
    check({0, 3} < seen, f"killed with {seen} older values left: not in between")


def behind_a_proxy(stack, pool, number):
    """The server's own path from now on, and what stands at the listed one."""
    real = pool.paths[number] + ".real"
    os.rename(pool.paths[number], real)
    proxy = Proxy(random.Random(1))
    stack.callback(proxy.close)
    return real, proxy, proxy.link(pool.paths[number], real)


def owner_written_while_it_is_dropped():
    """Between the read of the copies and the removal where clients look: what they wrote stays, and the older ones go."""
    with ExitStack() as stack:
        pool = Pool(stack, 3)
        keys = outage(pool, 3)
        real, proxy, link = behind_a_proxy(stack, pool, 2)
        removals = 0
        for piece in range(1, 50):
            for key in keys:
                store(real, key, "v1")
                pool.store(1, key, "v2")
            proxy.plan(link, "hold", piece)
            with subprocess.Popen([MCDS, "-s", pool.list, "--as", PROFILE, "where", "--prune", "--yes", "--divergent", "drop", *keys],
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=pool.directory, env=environment()) as drop:
                while not link.held and drop.poll() is None:
                    time.sleep(0.005)
                ended = not link.held
                removal = not ended and link.held[0][1].startswith((b"md ", b"delete "))
                if removal:
                    for key in keys:
                        store(real, key, "v3")
                proxy.let_go(link)
                drop.communicate(timeout=60)
            if removal:
                removals += 1
                check(pool.copies("v3") == len(keys) and pool.copies("v2") == 0, f"{piece}: {pool.copies('v3')} of what was written is left")
            if ended:
                break
            time.sleep(0.1)
        check(removals > 0, "no removal was held")


def written_between_a_drop_and_its_repetition():
    drop = ["where", "--prune", "--live", "--yes", "--divergent", "drop", "--journal", "j"]
    with ExitStack() as stack:
        pool = Pool(stack, 3)
        keys = outage(pool, 6)
        # Cut off, the server of the newer values keeps them: the owner's copies are gone, and the drop is not done.
        real, proxy, link = behind_a_proxy(stack, pool, 1)
        elsewhere = [key for key in keys if (1, key.encode()) in items([pool.paths[0], real, pool.paths[2]])]
        status, piece = 0, 0
        for _ in range(300):
            piece = piece + 1 if status else 1  # what ended well came in fewer pieces than before
            for key in keys:
                pool.store(2, key, "v1")
                store(real if key in elsewhere else pool.paths[0], key, "v2")
            proxy.plan(link, "cut", piece)
            status, _, _ = pool.run("--timeout", "150ms", *drop)
            proxy.plan(link)
            if status and (2, keys[0].encode()) not in items([pool.paths[0], real, pool.paths[2]]):
                break
            with suppress(FileNotFoundError):
                os.unlink(os.path.join(pool.directory, "j"))
        pool.store(2, keys[0], "v3")
        written = elsewhere[-1]
        store(real, written, "v4")
        status, _, error = pool.run(*drop)
        left = items([pool.paths[0], real, pool.paths[2]])
        check(left.get((2, keys[0].encode()), (b"", b""))[1].startswith(b"v3"), f"what was written at the owner went: {status} {error}")
        check(left.get((1, written.encode()), (b"", b""))[1].startswith(b"v4"), f"what was written elsewhere went: {status} {error}")
        check(pool.copies("v2") + pool.copies("v1") == 0, f"{pool.copies('v2')} and {pool.copies('v1')} older values are left: {status} {error}")


def without_its_journal():
    with ExitStack() as stack:
        pool = Pool(stack)
        keys = outage(pool, 3)
        for key in keys:
            pool.run("item", "remove", key)
        status, lines, error = pool.run("where", "--prune", "--live", "--yes", "--divergent", "drop")
        check(status == 2 and lines[-1]["verdicts"]["misplaced"] == 3 and pool.copies("v2") == 3, f"{status} {lines} {error}")
        # Written again where clients look: that stays, whatever the journal of another pool's drop is.
        status, lines, error = pool.run("where", "--prune", "--live", "--yes", "--even-last")
        check(status == 0 and pool.copies("v2") == 0, f"--even-last: {status} {lines} {error}")


def cells():
    """Each verdict, with what is done by default, by --even-last and by --divergent drop."""
    with ExitStack() as stack:
        pool = Pool(stack)
        pool.write([f"other:{i}" for i in range(300)], "o")
        key, = pool.owned_by(0, "cell:", 1)
        ways = {"prune": [], "last": ["--even-last"], "drop": ["--divergent", "drop"]}
        # Of the servers 0 (where the client looks), 1 and 2: before, and what is left by each way, with the exit code.
        for before, left in {
                "a--": {"prune": ("a--", 0), "last": ("a--", 0), "drop": ("a--", 0)},
                "aa-": {"prune": ("a--", 0), "last": ("a--", 0), "drop": ("a--", 0)},
                "aaa": {"prune": ("a--", 0), "last": ("a--", 0), "drop": ("a--", 0)},
                "ab-": {"prune": ("ab-", 2), "last": ("ab-", 2), "drop": ("---", 0)},
                "aab": {"prune": ("a-b", 2), "last": ("a-b", 2), "drop": ("---", 0)},
                "-a-": {"prune": ("-a-", 2), "last": ("---", 0), "drop": ("-a-", 2)},
                "-aa": {"prune": ("-aa", 2), "last": ("---", 0), "drop": ("-aa", 2)},
                "-ab": {"prune": ("-ab", 2), "last": ("-ab", 2), "drop": ("---", 0)},
                "aA-": {"prune": ("aA-", 2), "last": ("aA-", 2), "drop": ("---", 0)},
                "---": {"prune": ("---", 1), "last": ("---", 1), "drop": ("---", 1)},
        }.items():
            for way, expected in left.items():
                for number, letter in enumerate(before):
                    ask(pool.paths[number], f"delete {key}")
                    if letter != "-":
                        pool.store(number, key, letter.lower(), int(letter.isupper()))
                status, _, error = pool.run("where", "--prune", "--yes", *ways[way], "other:1", key)
                now = items(pool.paths)
                found = "".join("-" if (n, key.encode()) not in now else
                                (lambda item: item[1][:1].decode().upper() if item[0] == b"1" else item[1][:1].decode())(now[n, key.encode()])
                                for n in range(3))
                check((found, status) == expected, f"{before} by {way}: {found} and {status}, not {expected} {error}")


def a_server_that_does_not_answer():
    with ExitStack() as stack:
        pool = Pool(stack)
        keys = outage(pool, 5)
        for frozen in range(3):
            pool.processes[frozen].send_signal(signal.SIGSTOP)
            status, _, error = pool.run("--timeout", "150ms", "where", "--prune", "--yes", "--divergent", "drop", *keys)
            pool.processes[frozen].send_signal(signal.SIGCONT)
            check(status == 2 and pool.copies("v1") == pool.copies("v2") == 5, f"server {frozen} is frozen: {status} {error}")


def ours_stay():
    """Arrays, tables, counters and locks of one name on several servers are no application's keys."""
    with ExitStack() as stack:
        pool = Pool(stack)
        pool.write([f"other:{i}" for i in range(300)], "o")
        for number, path in enumerate(pool.paths):
            for words in (["array", "add", "jobs"], ["table", "add", "names"], ["counter", "set", "hits"], ["item", "set", "lock:one"]):
                run("unix:" + path, *words, f"{number}0", check=True)
        before = items(pool.paths)
        status, lines, error = pool.run("where", "--prune", "--live", "--yes", "--divergent", "drop")
        check(status == 2 and items(pool.paths) == before, f"{status} {lines} {error}")


def without_cas():
    with ExitStack() as stack:
        pool = Pool(stack, 3, "-C")
        keys = outage(pool, 5)
        for words in ([], ["--divergent", "drop"]):
            status, lines, error = pool.run("where", "--prune", "--yes", *words, *keys)
            check(status == 2 and pool.copies("v1") == pool.copies("v2") == 5, f"-C {words}: {status} {lines} {error}")
    with ExitStack() as stack:
        pool = Pool(stack)
        pool.restart(1, "-C")
        keys = pool.owned_by(2, "app:", 5)
        for key in keys:
            pool.store(2, key, "v1")
            pool.store(1, key, "v2")
        status, lines, error = pool.run("where", "--prune", "--yes", "--divergent", "drop", *keys)
        check(status == 2 and pool.copies("v1") == pool.copies("v2") == 5, f"one that is no owner has -C: {status} {lines} {error}")
        refused = [copy.get("prune") for line in lines for copy in line.get("copies", []) if copy["found"]]
        check(refused == ["refused"] * 10, f"one that is no owner has -C: {lines}")


def restarted_since():
    """What a journal has of a server ends with its restart: it counts the same cas uniques again."""
    with ExitStack() as stack:
        pool = Pool(stack)
        keys = pool.owned_by(0, "app:", 5)

        def drop_of(others):
            for key in keys:
                pool.store(0, key, "filled")
                for value in others:
                    pool.store(1, key, value)
            status, lines, error = pool.run("where", "--prune", "--live", "--yes", "--divergent", "drop", "--journal", "j")
            check(status == 0, f"drop of {others}: {status} {lines} {error}")
            return lines[-1]["removed"], pool.copies("filled"), sum(map(pool.copies, others))

        for others, expected in ((["older"], (10, 0, 0)), ([], (0, 5, 0)), (["newer"], (10, 0, 0))):
            found = drop_of(others)
            check(found == expected, f"drop of {others}: {found}")
            pool.restart(0)
            pool.restart(1)


def a_second_client_shares_keys():
    """Its copies are not left over: it reads them. What a failover left is no second client."""
    for servers in (2, 3, 5):
        with ExitStack() as stack:
            pool = Pool(stack, servers)
            keys = [f"user:{i}" for i in range(400)]
            pool.write(keys[:300], "x")
            status, lines, error = pool.run("where", "-", stdin="\n".join(keys[250:]), profile="gomemcache")
            for line in lines:
                pool.store(line["index"], line["key"], "x")
            pool.write(keys[300:], "x")
            before = items(pool.paths)
            status, lines, error = pool.run("where", "--prune", "--live", "--yes")
            check(status == 65 and "gomemcache" in error and items(pool.paths) == before, f"{servers} servers: {status} {lines} {error}")
            status, lines, error = pool.run("where", "--prune", "--live", "--yes", "--even-replicas")
            check(status == 0 and len(items(pool.paths)) == len(keys), f"{servers} servers, --even-replicas: {status} {lines} {error}")
            status, lines, error = pool.run("where", "--prune", "--live", "--yes", profile="dalli")
            check(status == 65 and not lines, f"another profile: {status} {lines} {error}")


def main():
    for test in (prune_keeps_the_newest, advice_of_the_doctor, duplicates_are_pruned_as_advised, without_its_journal, cells,
                 a_server_that_does_not_answer, ours_stay, without_cas, restarted_since, a_second_client_shares_keys, interrupted_drop,
                 owner_written_while_it_is_dropped, written_between_a_drop_and_its_repetition):
        test()
    finish()


if __name__ == "__main__":
    main()
