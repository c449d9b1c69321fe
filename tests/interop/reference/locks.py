"""Locks, with slots and fencing tokens. Public domain (CC0 1.0): copy freely."""
import json
import math
import os
import pwd
import random
import socket
import time
from datetime import datetime, timezone

from .lines import LOST_REPLY, TRIES, exptime, key_of, random_hex, repeated

IN_THE_PAST = 2592001


class Lock:
    def __init__(self, at, name, namespace="", slot=0):
        self.at = at
        self.key = key_of(namespace, "lock", name, *(["slot", str(slot)] if slot else []))
        self.suffix = b".%d" % slot if slot else b""
        self.token, self.until = None, 0.0

    def acquire(self, ttl_s, note="", slots=1):
        """Whether we hold it now, until `self.until` of time.monotonic()."""
        started, tokens = time.monotonic(), []
        now = datetime.now(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        holder = {"host": socket.gethostname(), "pid": os.getpid(), "user": pwd.getpwuid(os.geteuid()).pw_name,
                  "note": note, "acquired_at": now, "ttl_s": ttl_s, **({"slots": slots} if slots > 1 else {})}
        for _ in range(3):
            tokens.append(random_hex() + self.suffix)
            value = tokens[-1] + b" " + json.dumps(holder).encode()
            try:
                if self.at(self.key).add(self.key, value, exptime(math.ceil(ttl_s) + 2)):
                    return self._hold(tokens[-1], started + ttl_s)
            except LOST_REPLY:
                pass
            token, stored, _ = self.read()
            if token in tokens:
                return self._hold(token, started + ttl_s)
            if stored is not None:
                return False
        return False

    def fence(self):
        """The fencing token, greater than all before; nothing if it came too late."""
        key, server = self.key + b":fence", self.at(self.key)
        for _ in range(TRIES):
            number = repeated(lambda: server.incr(key, 1))
            first = time.time_ns() // 1000
            if number is None and repeated(lambda: server.add(key, b"%d" % first, first // 10**6 + 7 * 24 * 3600)):
                number = first
            if number is not None:
                return number if time.monotonic() < self.until else None
        raise RuntimeError(f"{key!r} comes and goes")

    def renew(self, ttl_s):
        """Whether we still hold it; then for another ttl_s."""
        started = time.monotonic()
        return self._change(exptime(math.ceil(ttl_s) + 2), ttl_s) and self._hold(self.token, started + ttl_s)

    def release(self):
        """Whether we held it until now."""
        self.until = 0.0
        return self._change(IN_THE_PAST)

    def _change(self, expire, ttl_s=None):
        for _ in range(TRIES):
            token, value, cas = self.read()
            if token is None or token != self.token:
                return False
            holder = holder_of(value)
            if ttl_s is not None and holder is not None:
                value = token + b" " + json.dumps({**holder, "ttl_s": ttl_s}).encode()
            if repeated(lambda: self.at(self.key).cas(self.key, value, cas, expire)):
                return True
        raise RuntimeError(f"{self.key!r} changes all the time")

    def _hold(self, token, until):
        self.token, self.until = token, until
        return time.monotonic() < until

    def read(self):
        """The holder's token, the value, its cas; nothing of a lock that is free."""
        value, cas = repeated(lambda: self.at(self.key).gets(self.key))
        return (None if value is None else value.split(b" ")[0]), value, cas


def holder_of(value):
    """The holder's fields, or nothing: another program's lock."""
    try:
        holder = json.loads(value.partition(b" ")[2])
    except ValueError:
        return None
    return holder if isinstance(holder, dict) else None


def slots_of(value):
    holder = holder_of(value)
    return holder and holder.get("slots", 1)


def acquire_slot(at, name, slots, ttl_s, note="", namespace=""):
    """Any of the slots, as a Lock; nothing if all are held."""
    all_slots = [Lock(at, name, namespace, slot) for slot in range(slots)]
    values = [lock.read()[1] for lock in all_slots]
    if any(value is not None and slots_of(value) not in (None, slots) for value in values):
        raise ValueError(f"{name} has another number of slots")
    free = [lock for lock, value in zip(all_slots, values) if value is None]
    random.shuffle(free)
    return next((lock for lock in free if lock.acquire(ttl_s, note, slots)), None)
