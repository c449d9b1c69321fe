#!/usr/bin/env python3
"""servers --every on a terminal is one screen: redrawn in place, no server's name cut, more columns on a wider one, filled to its height, with keys.

Usage: servers_screen_test.py BUILD_DIR
"""
import fcntl
import json
import os
import pathlib
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from checks import check, finish
from program import MCDS, clean_environment, run
from real_servers import Servers, connected, end

WIDTHS = (60, 80, 100, 132, 200)
HOME = b"\x1b[H"
PATIENCE_S = 60


# A session's leader, as a shell: a program in the foreground whose leader lives can be stopped.
LEADER = """
import os, signal, sys
signal.signal(signal.SIGTTOU, signal.SIG_IGN)
if not (program := os.fork()):
    os.setpgid(0, 0)
    os.tcsetpgrp(0, os.getpgrp())
    signal.signal(signal.SIGTTOU, signal.SIG_DFL)
    os.execv(sys.argv[1], sys.argv[1:])
os._exit(os.waitstatus_to_exitcode(os.waitpid(program, 0)[1]) & 255)
"""


class Terminal:
    def __init__(self, command, width, height=24, leader=()):
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))
        self.before = termios.tcgetattr(slave)
        environment = clean_environment(TERM="xterm")
        environment.pop("NO_COLOR", None)

        def session():
            os.setsid()
            fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
        self.slave = slave
        self.process = subprocess.Popen([*leader, MCDS, *command], stdin=slave, stdout=slave, stderr=slave, env=environment, preexec_fn=session)
        self.seen = b""

    def frames(self):
        """The screens so far, as lines."""
        shown = self.seen.split(HOME)[2:]  # the first clears the page
        return [re.sub(rb"\x1b\[[0-9;?]*[A-Za-z]", b"", frame).decode().replace("\r", "").split("\n") for frame in shown]

    def program(self):
        return int(pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text(encoding="ascii"))

    def read_until(self, wanted):
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end and not wanted():
            if select.select([self.master], [], [], 0.05)[0]:
                try:
                    self.seen += os.read(self.master, 1 << 16)
                except OSError:
                    break
        return wanted()

    def end(self, key=b"q"):
        os.write(self.master, key)
        self.read_until(lambda: self.process.poll() is not None)
        status = self.process.poll()
        while select.select([self.master], [], [], 0)[0]:
            self.seen += os.read(self.master, 1 << 16)
        if status is None:
            self.process.kill()
            self.process.wait()
        after = termios.tcgetattr(self.slave)
        os.close(self.master)
        os.close(self.slave)
        return status, after[3] == self.before[3]


def screen_at(width, servers, names, load, *words):
    terminal = Terminal(["-s", servers, "servers", "--every", "500ms" if words else "200ms", *words], width)
    def shown():
        load()
        return len(terminal.frames()) >= 4 and (not words or any("page:1" in line for frame in terminal.frames()[2:-1] for line in frame))
    ok = terminal.read_until(shown)
    status, restored = terminal.end()
    frames = terminal.frames()
    check(ok and status == 0 and restored, f"{width} {words}: {len(frames)} screens, exit {status}, restored {restored}: {terminal.seen[-400:]}")
    check(terminal.seen.endswith((b"\r\n", b"\n")) and b"\x1b[?1049l" in terminal.seen and b"\x1b[?25h" in terminal.seen,
          f"{width}: leaves the terminal as {terminal.seen[-100:]}")
    frame = next((frame for frame in frames[2:-1] if any("page:1" in line for line in frame)), frames[2] if len(frames) > 2 else [])
    text = "\n".join(frame)
    for name in names:
        check(name in text, f"{width} {words}: {name} is not whole in\n{text}")
    check(all(len(line) <= width for line in frame), f"{width} {words}: wider than it is: {[len(line) for line in frame]}\n{text}")
    check(len(re.findall(r"\d{4}-\d\d-\d\d", text)) == 1, f"{width} {words}: the date is not there once:\n{text}")
    if os.environ.get("MCDS_TEST_SHOW"):
        print(f"--- {width} columns {words}\n{text}")
    return frame


def main():
    with Servers(2) as started:
        started.start("-I", "2m")
        paths, processes = started.paths, started.processes
        servers = ",".join(f"m{number}=unix:{path}" for number, path in enumerate(paths, 1))
        with connected(paths[0]) as file:
            def load():
                file.write(b"set page:1 0 0 1\r\n1\r\n" + b"get page:1\r\n" * 50 + b"get page:nope\r\n" * 10)
                file.flush()
                for _ in range(1 + 50 * 3 + 10):
                    file.readline()

            heads = [screen_at(width, servers, ["m1 ", "m2 ", "m3 ", "all "], load)[1] for width in WIDTHS]
            columns = [len(head.split("  ")) for head in heads]
            check(all("get/s" in head and "hit" in head for head in heads), f"what matters most is missing: {heads}")
            check(all(len(one.split()) < len(other.split()) for one, other in zip(heads[:3], heads[1:])), f"no more columns when wider: {columns}")
            check(paths[0] not in "".join(heads), "a path where there is a name")
            # Without names: the paths are as they are, however long.
            bare = ",".join("unix:" + path for path in paths)
            screen_at(60, bare, paths, load)
            frame = screen_at(100, servers, ["m1 "], load, "--hot", "--find")
            check(any("page:1" in line and "on m1" in line for line in frame) and any("page:*" in line for line in frame),
                  "no hot keys:\n" + "\n".join(frame))
            check(any("drift m3" in line for line in frame), "nothing is found:\n" + "\n".join(frame))
            # A server that dies is said to be down, with its reason, on the same screen.
            end(processes[2])
            frame = screen_at_dead(servers, load)
            check(any(line.startswith("m3") and "down: " in line for line in frame), "dead:\n" + "\n".join(frame))
            keys_change_it(servers, load)
            fills_its_height(servers, load)
            for number in (signal.SIGQUIT, signal.SIGUSR1, signal.SIGALRM, signal.SIGABRT, signal.SIGTERM, signal.SIGSYS, signal.SIGRTMIN):
                ends_by(number, servers)
            for number in (signal.SIGTSTP, signal.SIGSTOP):
                is_stopped_by(number, servers)
            # A pipe has lines, as before.
            done = run(servers, "servers", "--every", "100ms", "-n", "1", "--hot", "--find")
            check(done.stdout.startswith('{"server":') and '"finding":"down"' in done.stdout and "\x1b" not in done.stdout, f"a pipe: {done}")


def screen_at_dead(servers, load):
    terminal = Terminal(["-s", servers, "servers", "--every", "200ms"], 80)
    terminal.read_until(lambda: load() or (b"\x1b[31mdown: " in terminal.seen and len(terminal.frames()) >= 4))
    status, _ = terminal.end()
    check(status == 2, f"one is down: ends with {status}")
    check(b"\x1b[31mdown: " in terminal.seen, "a server that is down is not red")
    rows = [line.split(" ")[0] for line in terminal.frames()[2][1:5]]
    check(rows == ["server", "all", "m3", "m1"], f"the sum is not first, then what is down: {rows}")
    return terminal.frames()[2]


def keys_change_it(servers, load):
    terminal = Terminal(["-s", servers, "servers", "--every", "200ms"], 80)

    def whole():
        """The last one may have come in part."""
        return [frame for frame, raw in zip(terminal.frames(), terminal.seen.split(HOME)[2:]) if b"\x1b[J" in raw]

    def shown(wanted):
        seen = len(whole())
        return terminal.read_until(lambda: load() or any(wanted("\n".join(frame)) for frame in whole()[seen:]))

    def press(keys):
        os.write(terminal.master, keys)

    check(shown(lambda text: "\nm1 " in text and "h: help" in text), "no screen")
    press(b"h")
    check(shown(lambda text: "sort by trouble" in text), "h shows no help")
    press(b"h")
    check(shown(lambda text: "sort by trouble" not in text), "h does not hide the help")
    press(b"s")
    check(shown(lambda text: ", by get/s" in text), "s does not sort")
    press(b"/m2")
    check(shown(lambda text: "/m2_" in text and "\nm2 " in text and "\nm1 " not in text and "\nall " in text), "/ does not filter")
    press(b"q")
    check(shown(lambda text: "/m2q_" in text and "\nm2 " not in text), "what is typed is not the filter")
    press(b"\x7f\r")
    check(shown(lambda text: "/m2 " in text), "Enter does not end the filter")
    press(b"/\x1b")
    check(shown(lambda text: "\nm1 " in text and "/m2" not in text), "Esc does not clear the filter")
    press(b"p")
    check(shown(lambda text: "  paused" in text), "p does not pause")
    time.sleep(1.5)  # one that goes on shows a later time
    press(b"h")
    check(shown(lambda text: "sort by trouble" in text), "no key means anything while it is paused")
    press(b"h")
    check(shown(lambda text: "sort by trouble" not in text), "h does not hide the help while it is paused")
    titles = {frame[0] for frame in whole() if "  paused" in frame[0]}
    check(len(titles) == 1, f"it goes on while it is paused: {titles}")
    press(b"p")
    check(shown(lambda text: "paused" not in text), "p does not go on")
    status, restored = terminal.end()
    check(status == 2 and restored, f"q after all keys: {status}, {restored}")


def fills_its_height(servers, load):
    path = servers.split("unix:")[1].split(",")[0]
    for width, height in ((80, 24), (120, 40)):
        terminal = Terminal(["-s", servers, "servers", "--every", "500ms", "--hot"], width, height)
        with connected(path) as file:
            def reads():
                load()
                file.write(b"".join(b"get hot:%d\r\n" % number for number in range(60)))
                file.flush()
                for _ in range(60):
                    file.readline()
            filled = terminal.read_until(lambda: reads() or any(len(frame) == height and all(frame[7:]) for frame in terminal.frames()[2:-1]))
        terminal.end()
        check(filled, f"{width}x{height} is not filled:\n" + "\n".join(terminal.frames()[-2]))
        rates = [line.index("/s  ") for line in terminal.frames()[-2][8:] if "/s  " in line]
        check(rates and len(set(rates)) == 1, f"rates are not aligned: {rates}")


def ends_by(number, servers):
    """The terminal was left on the other page, without a cursor and without echo."""
    terminal = Terminal(["-s", servers, "servers", "--every", "200ms"], 80)
    terminal.read_until(lambda: len(terminal.frames()) >= 2)
    terminal.process.send_signal(number)
    status, restored = terminal.end(b"")
    wanted = (2,) if number == signal.SIGTERM else (-number,)
    check(status in wanted and restored and b"\x1b[?25h\x1b[?1049l" in terminal.seen, f"{number!r}: {status}, {restored}: {terminal.seen[-100:]}")


def is_stopped_by(number, servers):
    """Before, a stop left the terminal on the other page, and behind it no key meant anything."""
    terminal = Terminal(["-s", servers, "servers", "--every", "200ms"], 80, leader=[sys.executable, "-c", LEADER])
    terminal.read_until(lambda: len(terminal.frames()) >= 2)
    program = terminal.program()
    os.kill(program, number)
    stat = pathlib.Path(f"/proc/{program}/stat")
    check(terminal.read_until(lambda: ") T " in stat.read_text(encoding="ascii")), f"{number!r}: it does not stop")
    if number == signal.SIGTSTP:
        check(terminal.read_until(lambda: b"\x1b[?1049l" in terminal.seen), f"{number!r}: stopped, it leaves the terminal as {terminal.seen[-100:]}")
    # The shell takes the terminal, with modes of its own, and gives it back.
    termios.tcsetattr(terminal.slave, termios.TCSANOW, terminal.before)
    seen = len(terminal.seen)
    os.kill(program, signal.SIGCONT)
    check(terminal.read_until(lambda: b"\x1b[?1049h" in terminal.seen[seen:]), f"{number!r}: continued, it shows no screen")
    status, restored = terminal.end()
    check(status == 2 and restored, f"{number!r}: q means nothing: {status}, {restored}")


def until(lines, what, wanted, load=lambda: None):
    """The first line that is wanted, under a load."""
    for _ in range(200):
        load()
        line = json.loads(lines.readline())
        if wanted(line):
            return line
    check(False, f"never: {what}")
    return {}


def lines_follow_the_servers():
    """Without a terminal: one that is restarted, one that dies, and the end when it is told to."""
    with Servers(2) as servers:
        first = servers.list.split(",")[0]
        command = [MCDS, "-s", servers.list, "servers", "--every", "100ms"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        with connected(servers.paths[0]) as file:
            def load():
                file.write(b"set k 0 0 1\r\n1\r\nget k\r\nget nope\r\n")
                file.flush()
                for _ in range(5):
                    file.readline()

            line = until(process.stdout, "rates", lambda line: line["server"] == first and line.get("gets_per_s", 0) > 0, load)
            check(0 < line.get("hit_ratio", -1) < 1 and line["sets_per_s"] > 0 and line["items"] == 1, f"rates: {line}")
        end(servers.processes[0])
        line = until(process.stdout, "it is down", lambda line: line["server"] == first and not line["up"])
        check("error" in line and "gets_per_s" not in line, f"down: {line}")
        line = until(process.stdout, "the pool", lambda line: line["server"] == "*" and line["servers_up"] == 1)
        check(line["servers"] == 2 and line["up"], f"the pool: {line}")
        servers.restart(0)
        line = until(process.stdout, "it is back", lambda line: line["server"] == first and line.get("items") == 0)
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate()
        check(process.returncode == 0 and err == "", f"ends with {process.returncode}: {err}")
        check(out == "" or out.endswith("\n"), f"whole lines: {out[-200:]}")
        # No server: the code of the last look.
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        until(process.stdout, "it began", lambda line: line["server"] == "*")
        end(*servers.processes)
        until(process.stdout, "all are down", lambda line: line["server"] == "*" and line["servers_up"] == 0)
        process.send_signal(signal.SIGINT)
        process.communicate()
        check(process.returncode == 69, f"all are down: ends with {process.returncode}")


if __name__ == "__main__":
    lines_follow_the_servers()
    main()
    finish()
