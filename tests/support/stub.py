"""A server that says what a test wants it to say."""
import contextlib
import socket
import threading


class Stub:
    """Hands every connection to `serve` in a thread; what that receives is its own affair. On a port of this machine, or on
    a unix socket at `path`; on another address of it with `host`."""

    def __init__(self, serve, path=None, host="127.0.0.1"):
        if path is None:
            self.socket = socket.create_server((host, 0))
            self.port = self.socket.getsockname()[1]
        else:
            self.socket = socket.socket(socket.AF_UNIX)
            self.socket.bind(path)
            self.socket.listen(64)
        self.serve = serve
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                connection, _ = self.socket.accept()
            except OSError:
                return
            threading.Thread(target=self.handle, args=(connection,), daemon=True).start()

    def handle(self, connection):
        with connection:
            try:
                self.serve(connection)
            except OSError:
                pass

    def close(self):
        self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def pass_on(one, other, there=lambda data: data, back=lambda data: data):
    """All that either says, changed on its way, until one of them has ended."""
    def go(source, target, change):
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                target.sendall(change(data))
        for end in (source, target):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
    other_way = threading.Thread(target=go, args=(other, one, back), daemon=True)
    other_way.start()
    go(one, other, there)
    other_way.join(5)
