#!/usr/bin/env python3
"""One server that is silent, closes or repeats itself: the answers of the others are whole, and what is said of it is true.

Usage: silent_server_test.py BUILD_DIR
"""
import json
import os
import signal
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from checks import check, finish
from program import answers, run
from real_servers import Servers
from stub import Stub

DEADLINE = ["--timeout", "60s", "--deadline", "4s"]


def a_deadline_below_the_timeout():
    """It ends the waiting for the silent one; all that the others say is printed."""
    with Servers(3) as servers:
        for number in range(30):
            run(servers.list, "item", "set", f"page:{number}", "text")
        frozen, *awake = ["unix:" + path for path in servers.paths]
        os.kill(servers.processes[0].pid, signal.SIGSTOP)
        try:
            for words in (["servers"], ["servers", "--stats"]):
                status, lines, said = answers(servers.list, *DEADLINE, *words)
                what = f"{words}: exit {status}: {lines} {said}"
                check(status == 75 and [line["up"] for line in lines] == [False, True, True], what)
                check("deadline" in lines[0]["error"] and "timeout" not in lines[0]["error"] and "rtt_us" not in lines[0], what)
                check(all("error" not in line and ("uptime_s" in line or line["stats"]["uptime"] >= 0) for line in lines[1:]), what)
            done = run(servers.list, *DEADLINE, "servers", "-o", "openmetrics")
            check(done.returncode == 75 and all(f'memcached_up{{server="{one}"}} {up}' in done.stdout
                                                for one, up in ((frozen, 0), *((one, 1) for one in awake))), f"metrics: {done}")
            for words, of_each in ((["item", "list"], "server"), (["item", "list", "--by-prefix"], "prefix"),
                                   (["item", "list", "--histogram"], "chunk_bytes"), (["item", "hot", "--for", "200ms"], "watched_s")):
                status, lines, said = answers(servers.list, *DEADLINE, *words)
                what = f"{words}: exit {status}: {lines} {said}"
                check(status == 75 and lines and all(of_each in line for line in lines), what)
                check(said.count('{"error"') == 1 and f'"server":"{frozen}"' in said, what)
                check("deadline has passed" in said and "--timeout" not in said and "busy" not in said, what)
                if of_each in ("server", "watched_s"):
                    check({line["server"] for line in lines} == set(awake), what)
        finally:
            os.kill(servers.processes[0].pid, signal.SIGCONT)


def made_up(path, watch, statistics=None):
    """A server that answers its first words; `statistics` gets the number of the question."""
    asked = []

    def serve(client):
        with client.makefile("rb") as requests:
            while words := requests.readline().split():
                if words[0] == b"version":
                    client.sendall(b"VERSION 1.6.18\r\n")
                elif words[0] == b"mn":
                    client.sendall(b"MN\r\n")
                elif words[0] == b"watch":
                    return client.sendall(watch)
                elif words == [b"stats"]:
                    asked.append(words)
                    text = statistics(len(asked))
                    if text is None:
                        return
                    client.sendall(text + b"END\r\n")
                else:
                    client.sendall(b"END\r\n")
    return Stub(serve, path)


def of_uptime(count):
    return b"STAT pid 1\r\nSTAT uptime %d\r\nSTAT cmd_get 5\r\nSTAT uptime %d\r\n" % (count, count + 100)


def statistics_that_fail_once(directory):
    path = os.path.join(directory, "once")
    with made_up(path, b"", lambda count: None if count == 2 else of_uptime(count)):
        status, lines, said = answers("unix:" + path, "servers", "--every", "100ms", "-n", "4")
        own = [line for line in lines if line["server"] != "*"]
        check(status == 0 and "closed" in own[0]["error"], f"the interval that failed: exit {status}: {own} {said}")
        check(all("error" not in line for line in own[1:]) and all("gets_per_s" in line for line in own[2:]), f"those behind it: {own}")


def a_name_that_comes_twice(directory):
    path = os.path.join(directory, "twice")
    with made_up(path, b"", of_uptime):
        done = run("unix:" + path, "servers", "--stats")
        check(json.loads(done.stdout)["stats"]["uptime"] == 101 and done.stdout.count('"uptime"') == 1, f"a name that comes twice: {done}")
    with made_up(path + "-none", b"", lambda count: b""):
        done = run(f"unix:{path}-none", "servers", "--stats", "-o", "value")
        check(done.returncode == 0 and done.stdout == "", f"no statistics: {done}")


def a_watch_that_breaks_off(directory):
    """servers --hot says so, as item hot does, and does not project its first events."""
    path = os.path.join(directory, "watch")
    events = b"".join(b"ts=1.%d gid=%d type=item_get key=k status=found clsid=1 cfd=26 size=3\r\n" % (number, number) for number in range(10))
    with made_up(path, b"OK\r\n" + events, of_uptime):
        status, lines, said = answers("unix:" + path, "servers", "--every", "1s", "-n", "1", "--hot")
        check("cannot be watched: the server closed the connection" in said, f"a watch that breaks off: exit {status}: {lines} {said}")
        check(all(line["events_per_s"] <= 20 for line in lines if "key" in line), f"a watch that breaks off: {lines}")


def main():
    a_deadline_below_the_timeout()
    with tempfile.TemporaryDirectory(prefix="mcds-silent-") as directory:
        statistics_that_fail_once(directory)
        a_name_that_comes_twice(directory)
        a_watch_that_breaks_off(directory)


if __name__ == "__main__":
    main()
    finish()
