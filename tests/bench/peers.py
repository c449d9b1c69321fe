"""What other clients of memcached need for the same work."""
import subprocess
import sys
import time

COLD_PYMEMCACHE = """
import sys
from pymemcache.client.base import Client
Client("unix:" + sys.argv[1]).incr("counter:c", 1)
"""


def timed(work, count):
    started = time.monotonic()
    work()
    return count / (time.monotonic() - started)


def of_pylibmc(path, kind, keys):
    import pylibmc
    client = pylibmc.Client([path], behaviors={"tcp_nodelay": True})
    if kind == "set":
        return timed(lambda: client.set_multi({key: "12345678" for key in keys}), len(keys))
    client.set_multi({key: "1" for key in keys})
    if kind == "incr":
        return timed(lambda: client.incr_multi(keys), len(keys))
    return timed(lambda: [client.append(key, "12345678") for key in keys], len(keys))


def of_pymemcache(path, kind, keys):
    from pymemcache.client.base import Client
    client = Client("unix:" + path, default_noreply=False)

    def set_all(value):
        # It sends a whole set_many before it reads: with more keys at a time both sides wait for ever.
        for start in range(0, len(keys), 500):
            client.set_many({key: value for key in keys[start:start + 500]})

    if kind == "set":
        return timed(lambda: set_all(b"12345678"), len(keys))
    set_all(b"1")
    if kind == "incr":
        return timed(lambda: [client.incr(key, 1) for key in keys], len(keys))
    return timed(lambda: [client.append(key, b"12345678") for key in keys], len(keys))


CLIENTS = {"pylibmc": of_pylibmc, "pymemcache": of_pymemcache}
PATIENCE = 20


def rates(path, kind, count):
    """(name, operations per second) of every client that is installed, each by its best batch call. In processes of
    their own: one that hangs is left out."""
    for name in CLIENTS:
        try:
            done = subprocess.run([sys.executable, __file__, name, path, kind, str(count)], capture_output=True, text=True,
                                  timeout=PATIENCE, check=False)
        except subprocess.TimeoutExpired:
            print(f"{name} {kind}: no end in {PATIENCE} s", file=sys.stderr)
            continue
        if done.returncode == 0:
            yield name, float(done.stdout)


if __name__ == "__main__":
    client, socket_path, what, number = sys.argv[1:]
    print(CLIENTS[client](socket_path, what, [f"peer{i}" for i in range(int(number))]))
