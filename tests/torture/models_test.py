#!/usr/bin/env python3
"""Histories of counters, arrays and logs that one order explains, and histories that none does, told apart; and the proxy
outlives what it does to others. Usage: models_test.py"""
import os
import random
import socket
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from checks import check, finish
from models import Counted, Logged
from proxy import Proxy

# What is done from when to when, and answered. `?` instead of the end: it was over then, and nobody knows whether it was done.
COUNTERS = [
    ("increments add up", "0-1 incr 5, 2-3 incr 2, 4-5 get 7", True),
    ("an increment is lost", "0-1 incr 5, 2-3 incr 2, 4-5 get 5", False),
    ("an increment counts twice", "0-1 incr 5, 2-3 get 10", False),
    ("what may have been done is seen late", "0-1 incr 5, 2?3 incr 2, 4-5 get 5, 6-7 get 7", True),
    ("what may have been done is seen, then gone", "0-1 incr 5, 2?3 incr 2, 4-5 get 7, 6-7 get 5", False),
    ("nothing is seen meanwhile", "0-3 incr 5, 1-2 get -, 4-5 get 5", True),
    ("one reader sees it, the next does not", "0-9 incr 5, 1-2 get 5, 3-4 get -", False),
    ("a set counts", "0-1 incr 5, 2-3 set 100, 4-5 incr 1, 6-7 get 101", True),
    ("a set is undone", "0-1 set 100, 2-3 set 5, 4-5 get 100", False),
    ("of two sets at a time either stays", "0-3 set 10, 1-4 set 20, 5-6 get 10, 7-8 get 10", True),
    ("two sets at a time add up", "0-3 set 10, 1-4 set 20, 5-6 get 30", False),
    ("two sets at a time change places later", "0-3 set 10, 1-4 set 20, 5-6 get 10, 7-8 get 20", False),
    ("a set that may have been done shows up late", "0-1 set 5, 2?3 set 500, 4-5 incr 1, 6-7 get 6, 8-9 get 501", True),
    ("a set that shows up late takes what came after it", "0-1 set 5, 2?3 set 500, 4-5 incr 1, 6-7 get 6, 8-9 get 500", False),
    ("a set that may have been done undoes acknowledged ones", "0-1 set 100, 2?3 set 1, 4-5 incr 7, 6-7 get 107, 8-9 get 1", False),
    ("the same, taking away what it saw", "0-1 set 100, 2?3 set 1, 4-5 incr 7, 6-7 get 107, 8-9 get 8", True),
    ("an increment beside a set is seen by it", "0-1 set 5, 2-5 set 9, 3-4 incr 1, 6-7 get 9", True),
    ("an increment beside a set is not seen by it", "0-1 set 5, 2-5 set 9, 3-4 incr 1, 6-7 get 10", True),
    ("an increment beside a set is not there, then is", "2-5 set 9, 3-4 incr 1, 6-7 get 9, 8-9 get 10", False),
    ("an increment is added to a set that it came before", "0-1 incr 1, 2-3 set 9, 4-5 get 10", False),
    ("a removal removes", "0-1 incr 5, 2-3 remove yes, 4-5 get -, 6-7 incr 1, 8-9 get 1", True),
    ("what was removed comes back", "0-1 incr 5, 2-3 remove yes, 4-5 get 5", False),
    ("an increment survives a removal that did not see it", "0-1 incr 5, 2-5 remove yes, 3-4 incr 2, 6-7 get 2", True),
    ("a removal finds nothing where something is", "0-1 incr 5, 2-3 remove no, 4-5 get 5", False),
    ("a removal finds something where nothing is", "0-1 remove yes", False),
    ("a removal that may have been done undoes increments after it", "0-1 incr 5, 2?3 remove ?, 4-5 incr 2, 6-7 get -", False),
    ("the same, of those before it", "0-1 incr 5, 2?3 remove ?, 4-5 incr 2, 6-7 get 7, 8-9 get 2", True),
]
LOGS = [
    ("events stay", "0-1 put x, 2-3 put y, 4-5 fetch xy, 6-7 fetch xy", True),
    ("an event is lost", "0-1 put x, 2-3 put y, 4-5 fetch y", False),
    ("an event is doubled", "0-1 put x, 4-5 fetch xx", False),
    ("an event is invented", "0-1 put x, 4-5 fetch xz", False),
    ("an event is seen before it is put", "0-1 fetch x, 2-3 put x", False),
    ("what may have been put appears late", "0?1 put x, 2-3 fetch , 4-5 fetch x", True),
    ("what may have been put appears and goes", "0?1 put x, 2-3 fetch x, 4-5 fetch ", False),
]


def acts(text):
    for act in text.split(", "):
        times, kind, *rest = act.split(" ")
        start, end = map(float, times.replace("?", "-").split("-"))
        yield start, None if "?" in times else end, end, kind, rest[0] if rest else ""


def counter(text):
    history = Counted()
    for start, end, over, kind, word in acts(text):
        if kind == "get":
            history.get(start, end, None if word == "-" else int(word))
        elif kind == "remove":
            history.remove(start, end, over, {"yes": True, "no": False, "?": None}[word])
        else:
            getattr(history, kind)(start, end, over, int(word))
    return history.explained()


def log(text):
    history = Logged()
    for start, end, _, kind, word in acts(text):
        if kind == "put":
            history.put(start, end, word)
        else:
            history.fetch(start, end, list(word))
    return not list(history.wrong())


def random_histories(number):
    """Of counters that do everything at one moment within each operation: no such history may be refused."""
    dice = random.Random(number)
    history, total, clock = Counted(), None, 0.0
    for _ in range(11):
        start, clock = clock - dice.uniform(0, 1), clock + dice.uniform(0, 1)
        moment, kind = clock, dice.choice(("incr", "incr", "get", "get", "set", "remove"))
        end = moment + dice.uniform(0, 1)
        if kind == "get":
            history.get(start, end, total)
        elif kind == "incr":
            history.incr(start, None if dice.random() < 0.2 else end, end, 1)
            total = (total or 0) + 1
        elif kind == "set":
            total = dice.randrange(100)
            history.set(start, None if dice.random() < 0.2 else end, end, total)
        else:
            history.remove(start, end, end, total is not None)
            total = None
    check(history.explained(), f"random history {number} of a counter is refused")
    reads = [span for span in history.spans if span.kind == "get"]
    for span in reads[-1:]:
        span.answer = 1000  # no set and no increments make it
        check(not history.explained(), f"random history {number} of a counter, with a wrong answer, is accepted")


def until(condition):
    for _ in range(10000):
        if condition():
            return
        time.sleep(0.001)
    check(False, "what the test waits for does not come")


def proxied(what, act):
    """A client behind a proxy, and the server's end of its connection."""
    with tempfile.TemporaryDirectory() as directory, socket.socket(socket.AF_UNIX) as listener, socket.socket(socket.AF_UNIX) as client:
        listener.bind(os.path.join(directory, "server"))
        listener.listen()
        proxy = Proxy(random.Random(1))
        link = proxy.link(os.path.join(directory, "link"), os.path.join(directory, "server"))
        client.connect(link.path)
        server = listener.accept()[0]
        server.settimeout(10)
        act(proxy, link, client, server)
        check(proxy.thread.is_alive(), f"the proxy ended when {what}")
        server.close()
        proxy.close()


def server_closes_what_is_held(proxy, link, client, server):
    proxy.plan(link, "hold")
    client.sendall(b"get a\r\n")
    until(lambda: link.held)
    connection = link.held[0][0]
    client.close()
    until(lambda: connection.gone)

    def now():  # before the proxy sees that the server has closed it
        server.close()
        for one, data in link.held:
            proxy._release(one, data)
    try:
        proxy._call(now)
    except RuntimeError:
        pass


def late_pieces_keep_their_order(proxy, link, client, server):
    proxy.chance = 1.0
    proxy.random = type("Late", (), {"random": lambda _: 0.0, "choice": lambda _, kinds: "request late",
                                     "uniform": lambda _, low, high: next(delays)})()
    delays = iter((0.4, 0.01, 0.2))
    for number, piece in enumerate((b"1", b"2", b"3"), 1):
        client.sendall(piece)
        until(lambda seen=number: proxy.counts["request late"] == seen)  # each is a piece of its own
    got = b""
    while len(got) < 3:
        got += server.recv(10)
    check(got == b"123", f"pieces of one stream arrive as {got}")


for judge, histories in ((counter, COUNTERS), (log, LOGS)):
    for what, text, right in histories:
        check(judge(text) == right, f"a history in which {what} is {'refused' if right else 'accepted'}: {text}")
for seed in range(60):
    random_histories(seed)
proxied("the server had closed a connection whose request was let go, and its client was gone", server_closes_what_is_held)
proxied("pieces were late", late_pieces_keep_their_order)
finish()
