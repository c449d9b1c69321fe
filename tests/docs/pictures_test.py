#!/usr/bin/env python3
"""Draws the terminal as it is after real commands in a sandbox under load, as SVG for light and dark pages.

Usage: pictures_test.py BUILD_DIR [--update]: runs them and compares what does not change from run to run, the header lines and how many
lines there are; --update writes tests/docs/NAME.svg.
"""
import fcntl
import html
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from checks import check, finish

HERE = os.path.dirname(os.path.abspath(__file__))
WIDTH, HEIGHT, ROW, CELL = 60, 20, 18, 8.4  # readable on a telephone
# What is shown; a screen that is redrawn, as it is after some seconds.
PICTURES = {
    "screen": ["mcds servers --every 1s --hot", "mcds item list --by-prefix -o text"],
}
# Browsers put runs of spaces together in text elements, whatever the picture's own white-space is.
STYLE = """<style>text{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;white-space:pre}
.b{fill:#f6f8fa}.t{fill:#24292f}.p{fill:#0969da}
@media(prefers-color-scheme:dark){.b{fill:#161b22}.t{fill:#e6edf3}.p{fill:#58a6ff}}</style>"""


def run(mcds, name):
    """(command, the lines it leaves on a terminal of WIDTH columns) of each command."""
    commands = PICTURES[name]
    script = "sleep 1" + "".join(f"; printf '\\001'; {'timeout --foreground 5 ' if '--every' in command else ''}{command}" for command in commands)
    terminal, other = pty.openpty()
    fcntl.ioctl(other, termios.TIOCSWINSZ, struct.pack("HHHH", HEIGHT, WIDTH, 0, 0))
    path = os.path.dirname(mcds) + ":" + os.environ["PATH"]
    process = subprocess.Popen([mcds, "sandbox", "--load", "--", "sh", "-c", script], stdin=subprocess.DEVNULL, stdout=other, stderr=other,
                               env={**os.environ, "PATH": path, "LANG": "C.UTF-8", "TERM": "xterm"}, start_new_session=True)
    os.close(other)
    said = b""
    while process.poll() is None or select.select([terminal], [], [], 0)[0]:
        if not select.select([terminal], [], [], 0.1)[0]:
            continue
        try:
            said += os.read(terminal, 65536)
        except OSError:
            break
    process.wait()
    os.close(terminal)
    return list(zip(commands, map(lines_of, said.decode().split("\x01")[1:])))


def lines_of(text):
    """What stays of each line: a carriage return begins it anew, and colours are not drawn."""
    if "\x1b[?1049h" in text:
        text = re.split(r"\x1b\[J|\x1b\[\?25h", text.split("\x1b[H")[-1])[0]
    lines = [line.rstrip("\r").split("\r")[-1] for line in text.split("\n")]
    plain = [re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", line).rstrip() for line in lines]
    plain = plain[:-1] if plain and not plain[-1] else plain
    return [line[start:start + WIDTH] for line in plain for start in range(0, max(1, len(line)), WIDTH)]


def svg(screens):
    rows = []
    for command, lines in screens:
        rows.append(("p", "$ " + command))
        rows += [("t", line) for line in lines]
        rows.append(("t", ""))
    rows.pop()
    height = ROW * len(rows) + 20
    width = CELL * WIDTH + 24
    text = "".join(f'<text class="{kind}" x="12" y="{20 + ROW * i}">{html.escape(line)}</text>\n' for i, (kind, line) in enumerate(rows))
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height}" viewBox="0 0 {width:.0f} {height}" role="img" '
            f'xml:space="preserve">{STYLE}\n'
            f'<rect class="b" width="100%" height="100%" rx="8"/>\n{text}</svg>\n')


def shown(picture):
    return [html.unescape(line) for line in re.findall(r"<text[^>]*>([^<]*)</text>", picture)]


def main():
    build = os.path.abspath(sys.argv[1])
    mcds = os.path.join(build, "tools", "mcds")
    for name in PICTURES:
        path = os.path.join(HERE, name + ".svg")
        screens = run(mcds, name)
        check(all(lines for _, lines in screens), f"{name}: nothing is shown: {screens}")
        drawn = svg(screens)
        if "--update" in sys.argv:
            with open(path, "w", encoding="utf-8") as file:
                file.write(drawn)
        with open(path, encoding="utf-8") as file:
            kept, now = shown(file.read()), shown(drawn)
        check(len(kept) == len(now), f"{name}.svg: {len(now)} lines instead of {len(kept)}; pictures_test.py BUILD_DIR --update")

        def steady(lines):
            return [" ".join(line.split()) for line in lines if line.startswith("$") or not re.search(r"\d", line)]

        check(steady(kept) == steady(now), f"{name}.svg: shows {steady(kept)}, and now it is {steady(now)}; pictures_test.py BUILD_DIR --update")
    finish()


if __name__ == "__main__":
    main()
