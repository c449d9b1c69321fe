#!/usr/bin/env python3
"""A name server that never answers costs the connect timeout, once. In a network and with a resolv.conf of its own.

Usage: name_server_test.py BUILD_DIR
"""
import contextlib
import ctypes
import os
import socket
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import private_network
from checks import check, finish
from real_servers import Servers

MCDS = os.path.join(os.path.abspath(sys.argv[1]), "tools", "mcds")
MS_BIND = 4096
ALONE_S = 10  # of the C library's own, with two attempts


def use_resolver_settings(path):
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(path.encode(), os.path.realpath("/etc/resolv.conf").encode(), None, MS_BIND, None) != 0:
        raise OSError(ctypes.get_errno(), "bind mount of resolv.conf")


def run(*arguments):
    started = time.monotonic()
    done = subprocess.run([MCDS, *arguments], capture_output=True, text=True, timeout=60, check=False)
    return done, time.monotonic() - started


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


def main():
    with silent_name_server() as memcached:
        done, seconds = run("-s", "cache1.example", "--connect-timeout", "300ms", "counter", "incr", "c")
        check(done.returncode == 69 and "name server" in done.stderr, f"one server behind a silent name server: {done}")
        check(seconds < ALONE_S / 2, f"one server behind a silent name server takes {seconds:.1f} s")
        servers = ",".join([memcached.list, "cache1.example", "cache2.example"])
        done, seconds = run("-s", servers, "--connect-timeout", "300ms", "servers")
        check(done.returncode == 2 and '"up":true' in done.stdout, f"the servers with an address are shown: {done}")
        check(seconds < ALONE_S / 2, f"two names of three servers take {seconds:.1f} s")
    finish()


if __name__ == "__main__":
    main()
