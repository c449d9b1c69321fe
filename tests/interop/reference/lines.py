"""What the structures share: keys, lines with their checksum, values, ids, exptimes, and what is asked again.

Public domain (CC0 1.0): copy freely.
"""
import base64
import hashlib
import json
import secrets
import time
import zlib

import pymemcache
from pymemcache.exceptions import MemcacheServerError, MemcacheUnexpectedCloseError

TRIES = 100
LOST_REPLY = (OSError, MemcacheUnexpectedCloseError)


def client(host, port, timeout_s=5):
    return pymemcache.Client((host, port), connect_timeout=timeout_s, timeout=timeout_s, no_delay=True,
                             default_noreply=False)


def key_of(namespace, structure, name, *parts):
    return ":".join([namespace + structure, name, *parts]).encode()


def element_key(prefix, element):
    """Any bytes as the last part of a key."""
    plain = b"".join(b"%%%02x" % byte if byte <= 0x20 or byte >= 0x7f or byte in b"%:" else bytes([byte])
                     for byte in element)
    if element.startswith(b"~") or len(prefix + plain) > 250:
        plain = b"~" + hashlib.sha256(element).hexdigest()[:32].encode()
    return prefix + plain


def sealed(line):
    return b"%b *%08x\n" % (line, zlib.crc32(line))


def unsealed(line):
    """A line without its checksum; nothing if it is damaged."""
    text, star, checksum = line.rpartition(b" *")
    return text if star and checksum == b"%08x" % zlib.crc32(text) else None


def text_of(value):
    """A value as a line has it: JSON, or b"..." for bytes that are not UTF-8."""
    if isinstance(value, bytes):
        try:
            value = value.decode()
        except UnicodeDecodeError:
            return b'b"%b"' % base64.b64encode(value)
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def value_of(text):
    try:
        return base64.b64decode(text[2:-1]) if text.startswith(b'b"') else json.loads(text)
    except ValueError:
        return text  # another program's


def random_hex():
    """16 digits, the first of which is a letter."""
    return (secrets.choice("abcdef") + secrets.token_hex(8)[1:]).encode()


def timed_id():
    return b"%08x" % int(time.time()) + secrets.token_hex(4).encode()


def exptime(seconds):
    """Above 30 days memcached takes it for a UNIX time."""
    return seconds if seconds <= 30 * 24 * 3600 else int(time.time()) + seconds


def repeated(step):
    """For a step that may be done twice: it is asked again when its reply is lost."""
    for _ in range(2):
        try:
            return step()
        except LOST_REPLY:
            pass
    return step()


def append(server, key, lines):
    """"stored", "missing" or "full". A line that is there twice counts once."""
    def once():
        try:
            return repeated(lambda: server.append(key, lines))
        except MemcacheServerError:
            return False
    if once():
        return "stored"
    there = repeated(lambda: server.get(key)) is not None
    if once():  # it was created meanwhile
        return "stored"
    return "full" if there else "missing"


def get_all(at, keys):
    """What is there of many keys, each from its server."""
    servers = {}
    for key in keys:
        servers.setdefault(id(at(key)), (at(key), []))[1].append(key)
    found = {}
    for server, some in servers.values():
        for start in range(0, len(some), 100):
            found.update(repeated(lambda batch=some[start:start + 100]: server.get_many(batch)))
    return found
