#!/usr/bin/env python3
"""servers --every follows a server that is restarted, one that dies, and ends when it is told to.

Usage: servers_every_test.py BUILD_DIR
"""
import json
import os
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from checks import check, finish
from program import MCDS
from real_servers import Servers, connected, end



def until(lines, what, wanted, load=lambda: None):
    """The first line that is wanted, under a load."""
    for _ in range(200):
        load()
        line = json.loads(lines.readline())
        if wanted(line):
            return line
    check(False, f"never: {what}")
    return {}


def main():
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
    main()
    finish()
