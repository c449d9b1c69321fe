"""python-binary-memcached: class=ReplicatingClient or DistributedClient; user=NAME and password=TEXT for it."""
import bmemcached

import writer

options = writer.options()
servers = [host if port == 0 else f"{host}:{port}" for host, port, _, _ in writer.servers()]
client = getattr(bmemcached, options["class"])(servers, options.get("user"), options.get("password"))
for key, value in writer.pairs():
    if not client.set(key, value):
        raise SystemExit(f"not stored: {key}")
