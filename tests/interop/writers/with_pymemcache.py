"""pymemcache: keys=bytes, prefix=TEXT."""
from pymemcache.client.hash import HashClient

import writer

options = writer.options()
servers = [host if port == 0 else (host, port) for host, port, _, _ in writer.servers()]
client = HashClient(servers, allow_unicode_keys=True, key_prefix=options.get("prefix", "").encode())
for key, value in writer.pairs():
    if not client.set(key.encode() if options.get("keys") == "bytes" else key, value, noreply=False):
        raise SystemExit(f"not stored: {key}")
