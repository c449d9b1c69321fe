"""Stores values by a Python client, reads them back and prints each as the client has read it.

Usage: values.py CLIENT HOST:PORT compress|plain; a line of JSON for each value: {"key":…,"value":…}
"""
import base64
import json
import math
import subprocess
import sys
from collections import OrderedDict

CLIENT, ADDRESS, COMPRESS = sys.argv[1], sys.argv[2], sys.argv[3] == "compress"


class Point:
    def __init__(self, x, y):
        self.x, self.y = x, y


class Slots:
    __slots__ = ("first", "second")


def values():
    slots = Slots()
    slots.first, slots.second = 1, [2]
    yield from ("text", "naïve ключ 😀", "", "line\r\nline\\", b"bytes", b"\xff\x00\xfe", 0, -5, 2 ** 40, 2 ** 70, True, False,
                1.5, -1e300, math.inf, math.nan, None, [1, [2, [3]], "x"], (1, "two", 3.0, None), {"a": {"b": [True, False]}},
                {1: "int", (1, 2): "tuple", None: 0, "@at": 1}, {3, 1, 2}, frozenset(["one"]), bytearray(b"\x01\xff"),
                OrderedDict(first=1, second=2), Point(1, Point("y", [])), [2 ** 64 - 1, 2 ** 64, -2 ** 63, -2 ** 63 - 1],
                list(range(400)), {f"name {i}": "value " * 20 for i in range(30)})
    if CLIENT not in ("python-memcached", "bmemcached"):  # protocol 0 has no slots
        yield slots


def plain(value):
    if isinstance(value, (bytes, bytearray)):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return {"@b64": base64.b64encode(value).decode()}
    if isinstance(value, float) and not math.isfinite(value):
        return {"@number": "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"}
    if isinstance(value, int) and not -2 ** 63 <= value < 2 ** 64:
        return {"@number": str(value)}
    if isinstance(value, (set, frozenset)):
        return {"@set": [plain(one) for one in value]}
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    if isinstance(value, dict):
        return {name_of(name): plain(one) for name, one in value.items()}
    if isinstance(value, (Point, Slots)):
        members = vars(value) if isinstance(value, Point) else {name: getattr(value, name) for name in Slots.__slots__}
        return {"@class": f"__main__.{type(value).__name__}", **{name: plain(one) for name, one in members.items()}}
    return value


def name_of(name):
    if not isinstance(name, str):
        return json.dumps(plain(name), separators=(",", ":"))
    return "@" + name if name.startswith("@") else name


def client():
    """Its functions that store and read."""
    if CLIENT == "pymemcache":
        from pymemcache import serde
        from pymemcache.client.base import Client
        made = Client(ADDRESS, serde=serde.pickle_serde)
        return made.set, made.get
    if CLIENT.startswith("pymemcache:"):  # pickle's protocol
        from pymemcache import serde
        from pymemcache.client.base import Client
        made = Client(ADDRESS, serde=serde.PickleSerde(int(CLIENT.split(":")[1])))
        return made.set, made.get
    if CLIENT == "python-memcached":
        import memcache
        made = memcache.Client([ADDRESS])
        return (lambda key, value: made.set(key, value, min_compress_len=100 if COMPRESS else 0)), made.get
    if CLIENT == "pylibmc":
        import pylibmc
        made = pylibmc.Client([ADDRESS])
        return (lambda key, value: made.set(key, value, min_compress_len=100 if COMPRESS else 0)), made.get
    if CLIENT == "bmemcached":
        import bmemcached
        made = bmemcached.Client((ADDRESS,))
        return (lambda key, value: made.set(key, value, compress_level=-1 if COMPRESS else 0)), made.get
    import warnings
    import django.conf
    warnings.simplefilter("ignore")
    backend = {"django-pymemcache": "PyMemcacheCache", "django-pylibmc": "PyLibMCCache", "django-python-memcached": "MemcachedCache"}[CLIENT]
    django.conf.settings.configure(CACHES={"default": {
        "BACKEND": f"django.core.cache.backends.memcached.{backend}", "LOCATION": ADDRESS,
        "KEY_FUNCTION": "__main__.bare_key"}})
    from django.core.cache import cache
    return cache.set, cache.get


def pylibmc_ends_at(text):
    """Whether pylibmc itself ends by an assertion when it reads this, as Debian 13's does at the empty one."""
    code = f"import pylibmc; made = pylibmc.Client(['{ADDRESS}']); made.set('asserts', {text!r}); made.get('asserts')"
    return subprocess.run([sys.executable, "-c", code], stderr=subprocess.DEVNULL, check=False).returncode < 0


def bare_key(key, *_):
    return key


if __name__ == "__main__":
    store, read = client()
    left_out = [""] if "pylibmc" in CLIENT and pylibmc_ends_at("") else []
    for number, value in enumerate(one for one in values() if not (isinstance(one, str) and one in left_out)):
        key = f"{CLIENT.replace(':', '-')}-{sys.argv[3]}-{number}"
        store(key, value)
        print(json.dumps({"key": key, "value": plain(read(key))}))
