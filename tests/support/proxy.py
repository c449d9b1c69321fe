"""One process' fault proxy: every group of clients reaches every server over a socket of its own, on which requests and replies
are lost, cut, delayed or replaced, and which alone can be refused or fall silent."""
import collections
import heapq
import itertools
import os
import selectors
import socket
import threading
import time

REQUEST_FAULTS = ("request lost", "request cut", "request late")
REPLY_FAULTS = ("reply lost", "reply cut", "reply garbage", "reply late")
GARBAGE = (b"\x00\xff\x80garbage\r\n", b"EVIL 12 34\r\n" * 3, b"\r\n\r\n\r\n", b"VA -1 \r\n\r\n", b"<html>502</html>\r\n", b"VALUE x\r\n")


class Link:
    def __init__(self, path, upstream):
        self.path, self.upstream = path, upstream
        self.mode = "open"
        self.listener = None
        self.connections = set()
        self.plan, self.pieces = None, 0  # what happens from which piece of data on, and how many there were
        self.held = []  # requests that wait until they are let go


class Connection:
    def __init__(self, link, client, server):
        self.link, self.client, self.server = link, client, server
        self.deaf = False  # no reply gets through any more
        self.mute = False  # nothing gets through any more, in either direction
        self.held = 0  # requests that go later; those behind them wait
        self.late = collections.deque()  # those of them that go by themselves, in their order
        self.gone = False  # the client


class Proxy:
    def __init__(self, random):
        self.random = random
        self.selector = selectors.DefaultSelector()
        self.calls = collections.deque()
        self.timers, self.order = [], itertools.count()
        self.counts = collections.Counter()
        self.cut_after = 0  # the reply that is cut, counted from now; 0: none
        self.chance = 0.0  # of a fault, for every piece of data in either direction
        self.waking, self.wake = socket.socketpair()
        self.waking.setblocking(False)
        self.selector.register(self.waking, selectors.EVENT_READ, None)
        self.ended = False
        self.thread = threading.Thread(target=self._loop, daemon=True)
        self.thread.start()

    # From other threads.

    def link(self, path, upstream):
        link = Link(path, upstream)
        self._call(lambda: self._listen(link))
        return link

    def set_mode(self, link, mode):
        """open, refuse: connections are refused, those that exist are closed; silent: nothing gets through."""
        self._call(lambda: self._set_mode(link, mode))

    def plan(self, link, kind=None, piece=1):
        """What happens to the piece-th request and all later ones. cut: they do not arrive; deaf: this one arrives, its reply does not;
        both end as refuse. hold: they wait for let_go(). None: nothing, and the link is open."""
        def now():
            link.plan, link.pieces = (kind, piece) if kind else None, 0
            if not kind:
                self._set_mode(link, "open")
        self._call(now)

    def let_go(self, link):
        """What was held arrives, even if its sender is gone."""
        def now():
            link.plan, held, link.held = None, link.held, []
            for connection, data in held:
                self._release(connection, data)
        self._call(now)

    def honest(self):
        """No faults from now on, and what is held up goes on its way."""
        def now():
            self.chance = 0.0
            while self.timers:
                heapq.heappop(self.timers)[2]()
        self._call(now)

    def close(self):
        def end():
            self.ended = True
        if self.thread.is_alive():
            self._call(end)
        self.thread.join()
        for key in list(self.selector.get_map().values()):
            key.fileobj.close()
        self.selector.close()
        self.wake.close()

    def _call(self, function):
        done = threading.Event()
        self.calls.append((function, done))
        self.wake.send(b"x")
        while not done.wait(0.1):
            if not self.thread.is_alive():  # nothing would get through any more, which looks like a fault of those it tests
                raise RuntimeError("the proxy has ended: an error of its own, above")

    # In the loop.

    def _loop(self):
        while not self.ended:
            wait = max(0, self.timers[0][0] - time.monotonic()) if self.timers else None
            for key, _ in self.selector.select(wait):
                if key.data is None:
                    self.waking.recv(4096)
                elif key.fileobj.fileno() >= 0:
                    key.data(key.fileobj)
            while self.calls:
                function, done = self.calls.popleft()
                function()
                done.set()
            while self.timers and self.timers[0][0] <= time.monotonic():
                heapq.heappop(self.timers)[2]()

    def _later(self, seconds, function):
        heapq.heappush(self.timers, (time.monotonic() + seconds, next(self.order), function))

    def _listen(self, link):
        if os.path.exists(link.path):
            os.unlink(link.path)
        link.listener = socket.socket(socket.AF_UNIX)
        link.listener.bind(link.path)
        link.listener.listen(256)
        self.selector.register(link.listener, selectors.EVENT_READ, lambda listener: self._accept(link))

    def _set_mode(self, link, mode):
        if mode == link.mode:
            return
        if mode == "refuse":
            self.selector.unregister(link.listener)
            link.listener.close()
            for connection in list(link.connections):
                self._close(connection)
        elif link.mode == "refuse":
            self._listen(link)
        if mode == "silent":
            for connection in link.connections:
                connection.mute = True
        link.mode = mode

    def _accept(self, link):
        client, _ = link.listener.accept()
        client.settimeout(2)
        server = socket.socket(socket.AF_UNIX)
        server.settimeout(2)
        try:
            server.connect(link.upstream)
        except OSError:
            client.close()
            server.close()
            return
        connection = Connection(link, client, server)
        connection.mute = link.mode == "silent"
        link.connections.add(connection)
        self.selector.register(client, selectors.EVENT_READ, lambda _: self._request(connection))
        self.selector.register(server, selectors.EVENT_READ, lambda _: self._reply(connection))

    def _close(self, connection):
        connection.link.connections.discard(connection)
        for end in (connection.client, connection.server):
            if end.fileno() >= 0:
                if end in self.selector.get_map():
                    self.selector.unregister(end)
                end.close()

    def _received(self, end):
        try:
            return end.recv(1 << 18)
        except OSError:
            return b""

    def _send(self, connection, end, data):
        try:
            end.sendall(data)
        except OSError:
            self._close(connection)

    def _fault(self, kinds):
        if self.random.random() >= self.chance:
            return None
        kind = self.random.choice(kinds)
        self.counts[kind] += 1
        return kind

    def _request(self, connection):
        data = self._received(connection.client)
        if not data:
            if connection.held:  # it arrives all the same
                connection.gone = True
                self.selector.unregister(connection.client)
                connection.client.close()
                return
            return self._close(connection)
        if connection.mute:
            return
        if connection.link.plan and self._planned(connection, data):
            return
        kind = self._fault(REQUEST_FAULTS)
        if kind == "request lost":
            connection.mute = True
        elif kind == "request cut":
            self._send(connection, connection.server, data[:len(data) // 2])
            self._close(connection)
        elif kind == "request late" or connection.held:
            connection.held += 1
            connection.late.append(data)  # a stream keeps its order, whichever is due first
            self._later(self.random.uniform(0.02, 2), lambda: self._release(connection, connection.late.popleft()))
        else:
            self._send(connection, connection.server, data)

    def _planned(self, connection, data):
        """Whether the request goes no further."""
        link, (kind, piece) = connection.link, connection.link.plan
        link.pieces += 1
        if link.pieces < piece:
            return False
        if kind == "hold":
            connection.held += 1
            link.held.append((connection, data))
        elif kind == "cut":
            self._set_mode(link, "refuse")
        else:
            connection.deaf = True
            return False
        return True

    def _release(self, connection, data):
        connection.held -= 1
        if connection.server.fileno() >= 0:
            self._send(connection, connection.server, data)
            if connection.gone and not connection.held and connection.server.fileno() >= 0:  # else the server had closed it
                connection.server.shutdown(socket.SHUT_WR)

    def _reply(self, connection):
        data = self._received(connection.server)
        if not data:
            return self._close(connection)
        if connection.mute or connection.gone:
            return
        if connection.deaf:
            return self._set_mode(connection.link, "refuse")
        kind = self._fault(REPLY_FAULTS)
        if self.cut_after > 0:
            self.cut_after -= 1
            kind = kind if self.cut_after else "reply cut"
        if kind == "reply lost":
            connection.mute = True
        elif kind == "reply cut":
            self._send(connection, connection.client, data[:len(data) // 2])
            self._close(connection)
        elif kind == "reply garbage":
            self._send(connection, connection.client, self.random.choice(GARBAGE))
        elif kind == "reply late":
            connection.mute = True  # what comes behind it is lost
            self._later(self.random.uniform(0.01, 0.6), lambda: self._late_reply(connection, data))
        else:
            self._send(connection, connection.client, data)

    def _late_reply(self, connection, data):
        if connection.client.fileno() >= 0:
            self._send(connection, connection.client, data)
            connection.mute = False
