"""What every writer is given: SERVERS (`HOST|PORT|WEIGHT|NAME` each, separated by spaces) and NAME=VALUE options as
arguments, `KEY<TAB>VALUE` lines on standard input. It stores each through its client, or fails."""
import sys


def servers():
    for text in sys.argv[1].split():
        host, port, weight, name = text.split("|")
        yield host, int(port), int(weight), name


def options():
    return dict(argument.split("=", 1) for argument in sys.argv[2:])


def pairs():
    for line in sys.stdin.buffer.read().decode().split("\n"):
        if line:
            yield line.split("\t")
