"""What other clients of memcached need for the same work."""
import subprocess
import sys
import time

PYTHON = "/usr/bin/python3"  # the one distributions install clients for

COLD_PYMEMCACHE = """
import sys
from pymemcache.client.base import Client
Client("unix:" + sys.argv[1]).incr("counter:c", 1)
"""


def timed(work):
    started = time.monotonic()
    work()
    return time.monotonic() - started


def of_pylibmc(path, kind, keys):
    import pylibmc
    client = pylibmc.Client([path], behaviors={"tcp_nodelay": True})
    if kind == "set":
        return timed(lambda: client.set_multi({key: "12345678" for key in keys}))
    client.set_multi({key: "1" for key in keys})
    if kind == "incr":
        return timed(lambda: client.incr_multi(keys))
    return timed(lambda: [client.append(key, "12345678") for key in keys])


def of_pymemcache(path, kind, keys):
    from pymemcache.client.base import Client
    client = Client("unix:" + path, default_noreply=False)

    def set_all(value):
        # It sends a whole set_many before it reads: with more keys at a time both sides wait for ever.
        for start in range(0, len(keys), 500):
            client.set_many({key: value for key in keys[start:start + 500]})

    if kind == "set":
        return timed(lambda: set_all(b"12345678"))
    set_all(b"1")
    if kind == "incr":
        return timed(lambda: [client.incr(key, 1) for key in keys])
    return timed(lambda: [client.append(key, b"12345678") for key in keys])


CLIENTS = {"pylibmc": of_pylibmc, "pymemcache": of_pymemcache}
PATIENCE = 20


def seconds(client, path, kind, count):
    """What `count` operations take by the client's best batch call; None when it is not installed, or hangs: it runs
    in a process of its own."""
    try:
        done = subprocess.run([PYTHON, __file__, client, path, kind, str(count)], capture_output=True, text=True,
                              timeout=PATIENCE, check=False)
    except subprocess.TimeoutExpired:
        print(f"{client} {kind}: no end in {PATIENCE} s", file=sys.stderr)
        return None
    return float(done.stdout) if done.returncode == 0 else None


if __name__ == "__main__":
    client, socket_path, what, number = sys.argv[1:]
    print(CLIENTS[client](socket_path, what, [f"peer{i}" for i in range(int(number))]))
