"""A real memcached that is made to speak as other servers do: a proxy in front of it, and the table of what they answer."""
import socket
from dataclasses import dataclass

from stub import Stub

STORES = (b"add", b"set", b"replace", b"append", b"prepend", b"cas")
LONG_AGO = 2592001


@dataclass(frozen=True)
class Dialect:
    """What differs from memcached 1.6.18; seen on the servers themselves."""
    name: str
    version: str = "1.6.18"
    meta: str = "full"  # none, draft (1.5.19 to 1.5.22), early (1.6.0 to 1.6.12), strict (to 1.6.17), full
    unknown: bytes = b"ERROR\r\n"  # to a command it does not know; empty: it closes the connection
    closes: bool = False  # it closes the connection after `unknown`, with what came behind unread
    cas: bool = True
    expiry: bool = True
    touch: bool = True
    replace_missing: bytes = b"NOT_STORED\r\n"
    add_existing: bytes = b"NOT_STORED\r\n"
    many_keys: str = "ordered"  # a get of several: answered in their order, or "reversed"


TABLE = [
    Dialect("memcached-1.4", "1.4.39", meta="none"),
    Dialect("memcached-1.5.22", "1.5.22", meta="draft"),
    Dialect("memcached-1.6.0", "1.6.0", meta="early"),
    Dialect("memcached-1.6.12", "1.6.12", meta="early"),
    Dialect("memcached-1.6.14", "1.6.14", meta="strict"),
    Dialect("memcached-1.6.45", "1.6.45"),
    Dialect("twemproxy", meta="none", unknown=b"", many_keys="reversed"),
    Dialect("mcrouter", "mcrouter 1.0", meta="none", unknown=b"CLIENT_ERROR malformed request\r\n", closes=True),
    Dialect("fatcache", "fatcache", meta="none", unknown=b"", touch=False),
    Dialect("arcus", "1.15.0", meta="none", unknown=b"ERROR no matching command\r\n"),
    Dialect("pogocache", "1.3.1", meta="none", replace_missing=b"NOT_FOUND\r\n\0", add_existing=b"EXISTS\r\n"),
    Dialect("pogocache-without-cas", "1.3.1", meta="none", cas=False, replace_missing=b"NOT_FOUND\r\n\0",
            add_existing=b"EXISTS\r\n"),
    Dialect("memcachedb", "1.2.1", meta="none", cas=False, expiry=False, touch=False),
]


class Link:
    """One client's connection, one command after the other."""

    def __init__(self, dialect, client, server_path):
        self.dialect, self.client = dialect, client
        self.requests = client.makefile("rb")
        self.server = socket.socket(socket.AF_UNIX)
        self.server.connect(server_path)
        self.answers = self.server.makefile("rb")

    def run(self):
        try:
            while line := self.requests.readline():
                answer = self.answer(line)
                if not answer:
                    break
                self.client.sendall(answer)
                if self.dialect.closes and answer == self.dialect.unknown:
                    break
        except OSError:
            pass
        finally:
            self.client.close()
            self.server.close()

    def ask(self, line, data=b""):
        self.server.sendall(line + data)
        answer = first = self.answers.readline()
        if first.startswith((b"VALUE ", b"STAT ")):
            while not answer.endswith(b"\r\nEND\r\n") or self.inside(answer):
                answer += self.answers.readline()
        if first.startswith(b"VA "):
            answer += self.answers.read(int(first.split()[1]) + 2)
        return answer

    @staticmethod
    def inside(answer):
        """Whether what looks like the end is in a value."""
        at = 0
        while answer.startswith(b"VALUE ", at):
            end = answer.index(b"\n", at) + 1
            at = end + int(answer[at:end].split()[3]) + 2
            if at >= len(answer):
                return True
        return not answer.startswith((b"END", b"STAT"), at)

    def answer(self, line):
        words = line.split()
        data = self.requests.read(int(words[4]) + 2) if words and words[0] in STORES and len(words) > 4 else b""
        if words[0] == b"version":
            return b"VERSION " + self.dialect.version.encode() + b"\r\n"
        if words[0] in (b"mn", b"mg", b"ma", b"md", b"ms", b"me"):
            return self.meta(words, line)
        if words[0] == b"touch" and not self.dialect.touch:
            return self.dialect.unknown
        return self.classic(words, line, data)

    def classic(self, words, line, data):
        dialect = self.dialect
        no_cas = not dialect.cas and dialect.version == "1.2.1"
        if words[0] in (b"gets", b"cas") and no_cas:
            return dialect.unknown
        if words[0] in STORES and not dialect.expiry:
            words[3] = b"0"
            line = b" ".join(words) + b"\r\n"
        answer = self.ask(line, data)
        if words[0] == b"gets" and not dialect.cas and answer.startswith(b"VALUE "):
            first, rest = answer.split(b"\r\n", 1)
            answer = b" ".join([*first.split()[:4], b"0"]) + b"\r\n" + rest
        if words[0] == b"add" and answer == b"NOT_STORED\r\n":
            return dialect.add_existing
        if words[0] == b"replace" and answer == b"NOT_STORED\r\n":
            return dialect.replace_missing
        if words[0] == b"get" and len(words) > 2 and dialect.many_keys == "reversed":
            return b"".join(self.ask(b"get %s\r\n" % key)[:-5] for key in reversed(words[1:])) + b"END\r\n"
        return answer

    def meta(self, words, line):
        dialect = self.dialect
        if dialect.meta == "none":
            return dialect.unknown
        if dialect.meta == "draft":
            return {b"mn": b"EN\r\n", b"mg": b"CLIENT_ERROR incorrect number of tokens supplied\r\n",
                    b"md": b"CLIENT_ERROR invalid or duplicate flag\r\n"}.get(words[0], b"ERROR\r\n")
        if words[0] == b"mg" and len(words) == 2 and dialect.meta in ("early", "strict"):
            return b"CLIENT_ERROR bad command line format\r\n"
        if words[0] == b"md" and dialect.meta == "early" and any(word.startswith(b"C") for word in words[2:]):
            return b"EX \r\n" if self.ask(b"mg %s s\r\n" % words[1])[:2] == b"HD" else b"NF \r\n"
        return self.ask(line)


class DialectServer(Stub):
    link = Link

    def __init__(self, dialect, server_path, path):
        super().__init__(lambda client: self.link(dialect, client, server_path).run(), path)
