"""A server that says what a test wants it to say."""
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
