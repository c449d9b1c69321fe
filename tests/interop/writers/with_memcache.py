"""python-memcached: prefix=TEXT (of set_multi), oldhash=1."""
import memcache

import writer

options = writer.options()
if options.get("oldhash"):
    memcache.useOldServerHashFunction()
servers = [(f"unix:{host}" if port == 0 else f"{host}:{port}", weight) for host, port, weight, _ in writer.servers()]
client = memcache.Client(servers)
pairs = dict(writer.pairs())
if "prefix" in options:
    failed = client.set_multi(pairs, key_prefix=options["prefix"])
else:
    failed = [key for key, value in pairs.items() if not client.set(key, value)]
if failed:
    raise SystemExit(f"not stored: {failed}")
