#!/usr/bin/env python3
"""A server that is slow to say that it is busy with another dump is asked again: it was taken for one without keys, and a move left them.

Usage: busy_dump_test.py BUILD_DIR
"""
import json
import os
import socket
import subprocess
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from checks import check, finish

mcds = os.path.join(os.path.abspath(sys.argv[1]), "tools", "mcds")
dumps = []


def serve(connection):
    with connection, connection.makefile("rwb") as file:
        for line in file:
            word = line.strip()
            if word.startswith(b"lru_crawler metadump"):
                dumps.append(word)
                if len(dumps) == 1:
                    check(file.readline().strip() == b"version", "after a silence the end is asked for")
                    file.write(b"BUSY currently processing crawler request\r\nVERSION 1.6.18\r\n")
                else:
                    file.write(b"key=k exp=-1 la=1 cas=2 fetch=no cls=1 size=69\nEND\r\n")
            elif word == b"mn":
                file.write(b"MN\r\n")
            elif word == b"version":
                file.write(b"VERSION 1.6.18\r\n")
            elif word == b"stats":
                file.write(b"STAT time 1\r\nEND\r\n")
            else:
                check(False, f"unexpected: {line}")
            file.flush()


def main():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        def accept():
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                threading.Thread(target=serve, args=(connection,), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        command = [mcds, "-s", f"127.0.0.1:{listener.getsockname()[1]}", "item", "list", "--timeout", "2s"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        check(done.returncode == 0 and done.stderr == "", f"ends with {done.returncode}: {done.stderr}")
        check([line["key"] for line in lines] == ["k"], f"its key is listed: {lines}")
        check(len(dumps) == 2, f"it is asked twice: {dumps}")


if __name__ == "__main__":
    main()
    finish()
