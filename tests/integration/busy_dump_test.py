#!/usr/bin/env python3
"""A server that is slow to say that it is busy with another dump is asked again: it was taken for one without keys, and a move left them.

Usage: busy_dump_test.py BUILD_DIR
"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from checks import check, finish
from program import answers
from stub import Stub

dumps = []


def serve(connection):
    with connection.makefile("rwb") as file:
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
    with Stub(serve) as server:
        status, lines, error = answers(f"127.0.0.1:{server.port}", "item", "list", "--timeout", "2s")
        check(status == 0 and error == "", f"ends with {status}: {error}")
        check([line["key"] for line in lines] == ["k"], f"its key is listed: {lines}")
        check(len(dumps) == 2, f"it is asked twice: {dumps}")


if __name__ == "__main__":
    main()
    finish()
