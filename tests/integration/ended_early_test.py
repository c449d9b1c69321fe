#!/usr/bin/env python3
"""A command that changes many things and is ended early by SIGINT, SIGTERM or --deadline says what it did, with "unfinished":true.
An examination that is ended early has no findings. And what waits for somebody waits: a standard output that blocks, slow servers.

Usage: ended_early_test.py BUILD_DIR
"""
import array
import fcntl
import json
import os
import signal
import subprocess
import sys
import tempfile
import termios
import time
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from checks import check, finish
from program import MCDS, environment, run, wait_for
from real_servers import connected, flush, running, Servers, statistics

KEYS = 5000
HANGS_S = 60


def start(words, **more):
    return subprocess.Popen([MCDS, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(), **more)


def fill(path, prefix):
    with connected(path) as file:
        for number in range(KEYS):
            file.write(f"set {prefix}{number} 0 0 1 noreply\r\nx\r\n".encode())
        file.write(b"version\r\n")
        file.flush()
        file.readline()


def count(server, prefix):
    return len(run(server, "item", "list", "--prefix", prefix, "-o", "value", check=True).stdout.split())


def wait_until_begun(process, begun):
    while process.poll() is None and not begun():
        time.sleep(0.02)


def summary_of(process):
    try:
        output, errors = process.communicate(timeout=HANGS_S)
    except subprocess.TimeoutExpired:
        process.kill()
        output, errors = process.communicate()
        return {"hangs": True}, errors
    lines = [json.loads(line) for line in output.splitlines()]
    return (lines[-1] if lines else {}), errors


def by_what_ends():
    """(name, options, signal, exit status)"""
    yield "SIGINT", [], signal.SIGINT, -signal.SIGINT
    yield "SIGTERM", [], signal.SIGTERM, -signal.SIGTERM
    yield "--deadline", ["--deadline", "3s"], None, 75


def removals(paths):
    server, other = ("unix:" + path for path in paths[:2])
    for name, options, number, status in by_what_ends():
        for kind in ("selection", "moved"):
            fill(paths[0], "p:")
            words = {"selection": ["-s", server, "item", "remove", "--prefix", "p:", "--rate", "1000/s", "--yes"],
                     "moved": ["-s", server, "ring", "move", "--to", other, "--rate", "1000/s"]}[kind]
            before = count(server, "p:")
            process = start([*options, *words])
            where = server if kind == "selection" else other
            wait_until_begun(process, lambda: count(where, "p:") != (before if kind == "selection" else 0))
            if number:
                process.send_signal(number)
            summary, errors = summary_of(process)
            done = before - count(server, "p:") if kind == "selection" else count(other, "p:")
            told = summary.get("removed" if kind == "selection" else "copied", KEYS)
            on_its_way = 0 if kind == "selection" else 100  # a move writes the next batch while it reads what became of the last
            check(process.returncode == status and summary.get("unfinished") is True and told <= done <= told + on_its_way and 0 < done < KEYS,
                  f"{kind} ended by {name}: {process.returncode}, {done} done, {summary}, {errors}")
            flush(paths[1])


def loads(paths, directory):
    server = "unix:" + paths[0]
    fill(paths[0], "p:")
    saved = os.path.join(directory, "saved")
    run(server, "item", "save", saved, check=True)
    for name, options, number, status in by_what_ends():
        flush(paths[0])
        process = start([*options, "-s", server, "item", "load", saved, "--rate", "1000/s"])
        wait_until_begun(process, lambda: count(server, "p:"))
        if number:
            process.send_signal(number)
        summary, errors = summary_of(process)
        done = count(server, "p:")
        check(process.returncode == status and summary.get("unfinished") is True
              and summary["loaded"] <= done <= summary["loaded"] + summary["unknown"] and 0 < done < KEYS,
              f"a load ended by {name}: {process.returncode}, {done} there, {summary}, {errors}")


def lines(paths):
    """Lines that come for as long as they are read: what was acknowledged is counted."""
    server = "unix:" + paths[0]
    reads = {"eventlog": ["eventlog", "fetch", "log", "-o", "value"], "array": ["array", "fetch", "log", "-o", "value"]}
    for kind, words, field in (("eventlog", ["eventlog", "put", "log", "-"], "events"), ("array", ["array", "add", "log", "-"], "adds")):
        for name, options, number, status in by_what_ends():
            run(server, kind, "drop", "log")
            reading, writing = os.pipe()
            process = start([*options, "-s", server, *words], stdin=reading)
            os.close(reading)
            os.write(writing, b"a\nb\nc\n")
            read = lambda: run(server, *reads[kind]).stdout.split()
            wait_until_begun(process, lambda: len(read()) == 3)
            if number:
                process.send_signal(number)
            summary, errors = summary_of(process)
            os.close(writing)
            check(process.returncode == status and summary.get("unfinished") is True and summary.get(field) == 3,
                  f"{kind} lines ended by {name}: {process.returncode}, {summary}, {errors}")


def examinations(paths):
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        process = start(["-s", "unix:" + paths[0], "doctor", "--for", "1h"])
        wait_for(lambda: int(statistics(paths[0])["curr_connections"]) > 1, "the first read")
        process.send_signal(number)
        output, errors = process.communicate(timeout=HANGS_S)
        check((process.returncode, output) == (-number, ""), f"doctor ended by {number.name}: {process.returncode}, {output}, {errors}")


def second_signal(paths):
    """While a server is frozen: the first signal waits for what is under way, the second for nothing."""
    with running(paths[2]) as memcached:
        fill(paths[2], "p:")
        process = start(["-s", "unix:" + paths[2], "--timeout", "1h", "item", "remove", "--prefix", "p:", "--rate", "1000/s", "--yes"])
        wait_until_begun(process, lambda: count("unix:" + paths[2], "p:") < KEYS)
        memcached.send_signal(signal.SIGSTOP)
        while process.poll() is None:
            process.send_signal(signal.SIGINT)
            try:
                process.wait(timeout=0.5)
            except subprocess.TimeoutExpired:
                pass
        process.communicate()
    check(process.returncode == -signal.SIGINT, f"two signals, and a frozen server: {process.returncode}")


def non_blocking_output(paths):
    """What shares its description with a shell's may be set so by any other program."""
    server = "unix:" + paths[0]
    fill(paths[0], "p:")
    for words in (["item", "list", "--prefix", "p:"], ["--deadline", "60s", "item", "list", "--prefix", "p:"]):
        reading, writing = os.pipe()
        os.set_blocking(writing, False)
        with subprocess.Popen([MCDS, "-s", server, *words], stdout=writing, stderr=subprocess.PIPE, env=environment()) as process:
            os.close(writing)
            process.poll()
            threading.Event().wait(0.3)  # the pipe is full meanwhile
            with open(reading, "rb") as file:
                got = file.read().count(b"\n")
            errors = process.communicate()[1]
        check(process.returncode == 0 and got == KEYS, f"a non-blocking output, {words}: {process.returncode}, {got} lines, {errors!r}")


def is_full(pipe):
    size = array.array("i", [0])
    fcntl.ioctl(pipe, termios.FIONREAD, size)
    return size[0] > 60000


def read_all(process, pause):
    """The output: with a pause, read slowly, else only when the process has ended."""
    output = b""
    if pause is None:
        process.wait(HANGS_S)
    while part := os.read(process.stdout.fileno(), 4096):
        output += part
        time.sleep(pause or 0)
    return output


def lines_that_nobody_reads(paths):
    """Of each line: its answer, or that it may have been applied, or that it was not sent. Two lines of a name have one answer."""
    server = "unix:" + paths[0]
    for name, options, number, status in by_what_ends():
        for pause in (None, 0.02):
            case = f"{name}, a reader that {'stops' if pause is None else 'is slow'}"
            with tempfile.TemporaryFile() as lines, tempfile.NamedTemporaryFile() as failures:
                names = [f"{name}{pause}-{i // 2}" for i in range(40000)]
                lines.write("".join(one + "\n" for one in names).encode())
                lines.seek(0)
                process = subprocess.Popen([MCDS, *options, "-s", server, "--errors", failures.name, "counter", "incr", "-"], stdin=lines,
                                           stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment())
                wait_until_begun(process, lambda: is_full(process.stdout))
                if number:
                    process.send_signal(number)
                *whole, torn = read_all(process, pause).split(b"\n")
                code = process.wait(HANGS_S)
                failed = [json.loads(line) for line in failures]
            answered = {json.loads(line)["counter"] for line in whole}
            found = subprocess.run([MCDS, "-s", server, "counter", "get", "-"], input="\n".join(names[::2]), capture_output=True, text=True,
                                   check=False, env=environment()).stdout.splitlines()
            counted = {answer["counter"] for answer in map(json.loads, found) if answer["found"]}
            unknown, unsent = ({names[failure["line"] - 1] for failure in failed if "line" in failure and
                                (failure["code"] == "unknown_outcome") is may_be} for may_be in (True, False))
            check(torn == b"", f"{case}: the last line is torn: {torn[-100:]!r}")
            check(code == (80 if status > 0 and unknown else status), f"{case}: {code}, {len(unknown)} lines in doubt")
            check(unknown or pause is not None, f"{case}: lines without an answer are in doubt")
            check(answered.isdisjoint(unknown) and answered <= counted <= answered | unknown and counted.isdisjoint(unsent),
                  f"{case}: {len(counted)} counted, {len(answered)} answered, {len(unknown)} in doubt, {len(unsent)} not sent")


def main():
    with Servers(2) as servers:
        paths = [*servers.paths, os.path.join(servers.directory, "frozen")]
        removals(paths)
        loads(paths, servers.directory)
        lines(paths)
        examinations(paths)
        lines_that_nobody_reads(paths)
        second_signal(paths)
        non_blocking_output(paths)
    finish()


if __name__ == "__main__":
    main()
