"""twemproxy: the options are the pool's settings; config=FILE is where its configuration is left."""
import os
import random

import proxy
import writer


def configuration(listen):
    lines = ["pool:", f"  listen: {listen}", "  preconnect: true", "  server_failure_limit: 1000"]
    lines += [f"  {name}: {value}" for name, value in writer.options().items() if name != "config"]
    lines.append("  servers:")
    for host, port, weight, name in writer.servers():
        lines.append(f"   - {host}:{weight}{f' {name}' if name else ''}" if port == 0 else
                     f"   - {host}:{port}:{weight}{f' {name}' if name else ''}")
    return "\n".join(lines) + "\n"


def loopback_address():
    """One of its own: statistics must have a port, and the default one may be taken."""
    return ".".join(str(random.randint(1, 254)) if i else "127" for i in range(4))


def main():
    with open(writer.options()["config"], "w", encoding="utf-8") as file:
        file.write(configuration("127.0.0.1:22121"))
    with proxy.running("nutcracker", lambda directory: configuration(os.path.join(directory, "proxy.sock")),
                       lambda directory: ["nutcracker", "-c", os.path.join(directory, "config"), "-a",
                                          loopback_address()]) as connection:
        answers = connection.makefile("rb")
        for key, value in writer.pairs():
            connection.sendall(f"set {key} 0 0 {len(value)}\r\n{value}\r\n".encode())
            answer = answers.readline()
            if answer != b"STORED\r\n":
                raise SystemExit(f"not stored: {key}: {answer!r}")


main()
