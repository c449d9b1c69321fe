"""pylibmc: options are behaviors, 1 and 0 being booleans, _ in a distribution's name a space."""
import pylibmc

import writer

behaviors = {name: bool(int(value)) if value in "01" else value
             for name, value in writer.options().items()}
if "distribution" in behaviors:
    behaviors["distribution"] = behaviors["distribution"].replace("_", " ")
servers = [host if port == 0 else f"{host}:{port}:{weight}" for host, port, weight, _ in writer.servers()]
client = pylibmc.Client(servers, behaviors=behaviors or None)
for key, value in writer.pairs():
    if not client.set(key, value):
        raise SystemExit(f"not stored: {key}")
