"""What works on which servers: the rows of mcds-engines(7), and the runs of the suite that each of them stands for.

A run is a set of flags of the memcached that is installed, or what speaks as another server does (tests/dialects).
"""
import re
from dataclasses import dataclass

# What is refused there, and nothing else is anywhere: what needs cas uniques, what needs an end.
WITHOUT_CAS = frozenset({"counter set", "counter incr --exact", "lock run", "hash drop", "table drop"})
WITHOUT_EXPIRY = WITHOUT_CAS | {"counter incr --ttl", "item touch"}
COPIES_WITHOUT_CAS = frozenset({"counter incr", "counter incr --exact", "hash set", "table add", "lock run"})
# Copies are compared by cas uniques, which `gets` has.
COPIES_WITHOUT_GETS = COPIES_WITHOUT_CAS | {"hash get", "table has", "item touch"}


@dataclass(frozen=True)
class Engine:
    name: str  # as in the page
    says: str
    runs: tuple = ()  # none: of a server that is not installed, seen by hand
    refused: frozenset = frozenset()
    refused_in_copies: frozenset = frozenset()


UNLISTED = "everything works, except listing live keys"
AGELESS = UNLISTED + ", and locks in several copies, because they do not report their uptime"
ENGINES = [
    Engine("memcached 1.4.31, 1.4.39, 1.5.19, 1.5.22, 1.6.0, 1.6.9, 1.6.10, 1.6.12, 1.6.14, 1.6.18, 1.6.27, 1.6.40, 1.6.43, 1.6.45",
           "everything works, also with -M, -X, -F and -B ascii",
           ("memcached-1.4", "memcached-1.5.22", "memcached-1.6.0", "memcached-1.6.12", "memcached-1.6.14", "-R 1 -t 1", "memcached-1.6.45",
            "-M -m 8", "-X", "-F", "-B ascii", "-I 8m")),
    Engine("memcached -I 8k (with -o slab_chunk_max=8192)",
           "everything works; batches are divided, and structures can grow less: "
           "an array to about 1 MiB, 32 chunks of an event log to some 150 items"),
    Engine("memcached -o ext_path=FILE (items on flash)",
           "everything works from 1.6.0 on; adding to an item on flash takes up to three more round trips. "
           "Before 1.6.0 such an item cannot be added to: a counter there is refused as not a number, a journal or event log as full",
           ("ext_path",)),
    Engine("memcached's own proxy 1.6.45, ARCUS 1.15, pogocache 1.3.1 with --cas", UNLISTED, ("arcus", "pogocache")),
    Engine("twemproxy 0.5, yrmcds 1.1", AGELESS, ("twemproxy",)),  # what speaks as it does there has statistics
    Engine("fatcache", "everything works, except listing live keys, and item touch, on which it closes the connection: exit code 80",
           ("fatcache",), frozenset({"item touch"}), frozenset({"item touch"})),
    Engine("proxies that close the connection on a command they do not know, as mcrouter does", UNLISTED, ("mcrouter",)),
    Engine("memcached -C, pogocache without --cas",
           "everything except locks, cached output, exact counters, counter set and take, limits with --sliding, arrays with --encoding json, "
           "drop of arrays, tables and hashes, check --accept, and tables, hashes and counters in several copies. "
           "An array, or the index of a table or hash, that has filled its item is refused more",
           ("-C", "pogocache-without-cas"), WITHOUT_CAS, COPIES_WITHOUT_CAS),
    Engine("MemcacheDB 1.2.1 and 2.0",
           "as with -C; counters with a ttl and item touch do not work either. "
           "Nothing expires there: visitors, event logs and items stay forever",
           ("memcachedb",), WITHOUT_EXPIRY, COPIES_WITHOUT_GETS),
    Engine("memcached -B binary", "with --protocol binary everything works, except listing live keys; without it nothing", ("-B binary",)),
    Engine("memcached -S", "with --protocol binary, --auth sasl and a login everything works, except listing live keys; without them nothing",
           ("-S",)),
]


def refused_by(run, copies=1):
    """What is refused in that run; each is of one row."""
    rows = [engine for engine in ENGINES if run in engine.runs]
    assert len(rows) == 1, f"{run} is of {len(rows)} rows"
    return rows[0].refused if copies == 1 else rows[0].refused_in_copies


def rows_of_page(text):
    """(name, what it says) of each row, as far as words go."""
    section = text.split(".Bl -tag", 1)[1].split("\n.El\n", 1)[0]
    rows = []
    for line in section.splitlines():
        if line.startswith(".It "):
            rows.append((re.sub(r" Pq (.*)$", r" (\1)", line.removeprefix(".It ")), ""))
        elif rows:
            rows[-1] = (rows[-1][0], f"{rows[-1][1]} {re.sub(r'^[.](Cm|Ql|Fl) ', '', line)}".strip())
    return rows
