"""Every verb of mcds against any servers: what works, what is refused by name, and what must never be.

A check is a run of mcds with the exit code and the words of output that are right. Exit 76 and 77 are honest refusals: they
name what the server lacks. Exit 80 (unknown), another code or output, a run without end and a signal are faults.
"""
import json
import os
import random
import subprocess
import tempfile
import time

LONGEST = 20  # seconds
LOCK_TTL = 12  # seconds: with several copies a server votes when it has run for longer than any lock lasts
REFUSED = (76, 77)
IN_COPIES = ("lock", "counter", "table", "hash")


class Suite:
    """`copies`: of what can have several. What is not for several is refused as usage (64) there."""

    def __init__(self, mcds, servers, options=(), copies=1):
        self.mcds, self.copies = mcds, copies
        self.options = list(options)
        self.environment = {key: value for key, value in os.environ.items() if not key.startswith(("MCDS_", "MEMCACHED_"))}
        self.environment.update(MCDS_SERVERS=servers, LC_ALL="C.UTF-8", XDG_CONFIG_HOME="/nonexistent")
        self.prefix = f"conformance-{random.getrandbits(40):010x}-"
        self.works, self.checks, self.refused, self.not_applicable, self.faults = 0, 0, [], 0, []

    def execute(self, arguments, given, command=()):
        copies = ["--copies", str(self.copies)] if self.copies > 1 and arguments[0] in IN_COPIES else []
        try:
            done = subprocess.run([self.mcds, *arguments, *self.options, *copies, *(["--", *command] if command else [])], input=given, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, env=self.environment, timeout=LONGEST, check=False)
        except subprocess.TimeoutExpired:
            return "hang", "", ""
        return done.returncode, done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace")

    def run(self, words, status=0, *shown, command=(), given=b""):
        """Whether it worked; the output is in `self.out`."""
        arguments = [word.replace("%", self.prefix) for word in words.split()]
        code, self.out, err = self.execute(arguments, given, command)
        what = f"{words}: exit {code}"
        self.checks += 1 + len(shown)
        if code == status and all(text in self.out for text in shown):
            self.works += 1
            return True
        if code in REFUSED:
            self.refused.append(f"{what}: {(err or self.out).strip().splitlines()[0]}")
        elif code == "hang":
            self.faults.append(f"hang: {words}")
        elif code == 80:
            self.faults.append(f"unknown: {what}: {err.strip()}")
        elif isinstance(code, int) and (code < 0 or code == 70):
            self.faults.append(f"crash: {what}: {err.strip()}")
        else:
            self.faults.append(f"wrong: {what}, not {status} with {list(shown)}: {self.out.strip()} {err.strip()}")
        return False

    def reasons(self):
        """What the refusals say."""
        return {json.loads(line[line.index("{"):])["error"]["message"] for line in self.refused if ': {"error":' in line}

    def skip(self, count):
        self.not_applicable += count

    def begins(self, words, look, count, *shown):
        """The first change of a structure; where it is refused, a look shows nothing, and `count` others are left out."""
        if self.run(words, 0, *shown):
            return True
        self.run(look[0], look[1])
        self.skip(count)
        return False

    def all(self):
        for group in (self.counters, self.exact_counters, self.hashes, self.tables, self.arrays, self.eventlogs, self.visitors,
                      self.caches, self.batches, self.items, self.others, self.locks):
            group()
        return self

    def counters(self):
        if not self.begins("counter incr %c", ("counter get %c", 1), 18, '"value":1', '"created":true'):
            return
        self.run("counter incr %c 5", 0, '"value":6', '"created":false')
        self.run("counter get %c", 0, '"value":6')
        self.run("counter decr %c 2", 0, '"value":4')
        self.run("counter incr %i 2 --init 40", 0, '"value":42')
        self.run("counter remove %c")
        self.run("counter get %c", 1, '"found":false')
        self.run("counter decr %c", 1)
        if self.run("counter incr %ttl --ttl 60s", 0, '"value":1'):
            self.run("counter incr %ttl --ttl 60s", 0, '"value":2')
        else:
            self.run("counter get %ttl", 1)  # nothing is left behind
            self.skip(1)
        if self.run("counter set %s 9", 0, '"value":9'):
            value = 8 if self.run("counter set %s 8 --ttl 60s", 0, '"value":8') else 9
            self.run("counter get %s", 0, f'"value":{value}')
            self.taken("%s", value)
        else:
            self.skip(3)
        self.run("counter limit %l --max 2 --per 1h", 0, '"used":1')
        self.run("counter limit %l --max 2 --per 1h", 0, '"used":2')
        self.run("counter limit %l --max 2 --per 1h", 1, '"allowed":false')

    def taken(self, name, value):
        """A counter in several copies is taken by nobody."""
        if self.copies > 1:
            return self.run(f"counter take {name}", 64)
        self.run(f"counter take {name}", 0, f'"taken":{value}')
        return self.run(f"counter get {name}", 0, '"value":0')

    def exact_counters(self):
        if self.run("counter incr %e --exact", 0, '"value":1', '"exact":true'):
            self.run("counter incr %e --exact", 0, '"value":2')
            self.run("counter incr %e", 0, '"value":3')
            self.run("counter get %e", 0, '"value":3')
            self.taken("%e", 3)
        else:
            self.run("counter get %e", 1)
            self.skip(4)

    def wait_for_votes(self, arguments):
        until = time.monotonic() + LOCK_TTL + 5
        while "may have forgotten locks" in self.execute(arguments, b"", ["true"])[2] and time.monotonic() < until:
            time.sleep(0.5)

    def locks(self):
        ttl = "--ttl 60s"
        if self.copies > 1:
            config = tempfile.NamedTemporaryFile("w", suffix=".conf")
            print(f"longest_lock_ttl = {LOCK_TTL}s", file=config, flush=True)
            ttl = f"--ttl {LOCK_TTL}s --config {config.name}"
            self.wait_for_votes(f"lock run {self.prefix}v {ttl}".split())
        if not self.run(f"lock run %r {ttl}", 0, "inside", command=["echo", "inside"]):
            self.run("lock show %r", 1)
            return self.skip(14)
        self.run(f"lock run %r {ttl}", 7, command=["sh", "-c", "exit 7"])
        self.run(f"lock acquire %a {ttl} --fence -o value", 0)
        token = self.out.split()[0] if self.out.split() else "none"
        self.run(f"lock acquire %a {ttl}", 75)
        self.run("lock show %a", 0, '"held":true')
        self.run(f"lock renew %a {ttl} --token {token}")
        self.run(f"lock renew %a {ttl} --token 0123456789abcdef", 1, '"renewed":false')
        self.run(f"lock release %a --token {token}")
        self.run("lock show %a", 1)
        self.run(f"lock acquire %a {ttl}", 0, '"acquired":true')
        self.run("lock release %a --force", 0)
        self.run(f"lock acquire %u {ttl} --slots 2", 0, '"slot":')
        self.run(f"lock acquire %u {ttl} --slots 2", 0, '"slot":')
        self.run(f"lock acquire %u {ttl} --slots 2", 75, '"acquired":false')
        return self.run("lock release %u --force --slot 1", 0)

    def hashes(self):
        if not self.begins("hash set %h a 1 b 2", ("hash get %h a", 1), 10):
            return
        self.run("hash get %h a", 0, '"1"')
        self.run("hash set %h a 3")
        self.run("hash get %h a", 0, '"3"')
        self.run("hash fetch %h", 0, '"3"', '"2"')
        self.run("hash fields %h", 0, '"a"', '"b"')
        self.run("hash count %h", 0, '"count":2')
        self.run("hash remove %h a", 0, '"removed":true')
        self.run("hash get %h a", 1)
        self.run("hash get %h b none", 1, '"2"', '"found":false')
        self.run("hash set %h -", 0, given=b"c\t30\nd\t40\n")
        self.run("hash get %h c d", 0, '"30"', '"40"')
        self.run("hash drop %h")
        self.run("hash fetch %h", 0)

    def tables(self):
        if not self.begins("table add %t x y", ("table has %t x", 1), 8, '"added":true'):
            return
        self.run("table add %t x", 0, '"added":false')
        self.run("table has %t x")
        self.run("table fetch %t", 0, '"x"', '"y"')
        self.run("table remove %t x", 0, '"removed":true')
        self.run("table has %t x", 1)
        self.run("table count %t", 0, '"count":1')
        self.run("table has %t x y", 1, '"has":false', '"has":true')
        self.run("table fetch %t -o value", 0, "y\n")
        self.run("table check %t")
        self.run("table drop %t")

    def arrays(self):
        self.run("array add %y one two", 0)
        self.run("array add %y three", 0)
        self.run("array count %y", 0, '"count":3')
        self.run("array fetch %y", 0, '"one"', '"three"')
        self.run("array remove %y two", 0)
        self.run("array fetch %y", 0, '"one"', '"three"')
        self.run("array remove %y none", 0)
        self.run("array count %y", 0, '"count":2')
        self.run("array fetch %none", 1)

    def eventlogs(self):
        self.run("eventlog put %v first")
        self.run("eventlog put %v second")
        self.run("eventlog fetch %v", 0, '"first"', '"second"')
        self.run("eventlog tail %v", 0, '"second"')
        self.run("eventlog put %w third --chunk 10m --chunks 6")
        self.run("eventlog tail %v %w", 0, '"second"', '"third"')
        self.run("eventlog put %v -", 0, given=b"".join(b"line %d\n" % i for i in range(200)))
        self.run("eventlog fetch %v", 0, '"line 0"', '"line 199"')
        self.run("eventlog info %v", 0, '"events":202')

    def visitors(self):
        self.run("visitors hit %p", 0, '"current":1')
        self.run("visitors hit %p", 0, '"current":2')
        self.run("visitors value %p", 0, '"current":2')
        self.run("visitors value %none", 0, '"current":0')

    def caches(self):
        """The command runs, whatever the servers do."""
        draw = ["sh", "-c", "echo drawn $$"]
        self.run("cache run %k --ttl 60s", 0, "drawn", command=draw)
        first = self.out
        self.run("cache run %k --ttl 60s", 0, "drawn", command=draw)
        if self.out != first:
            self.run("cache show %k", 1)
            return self.skip(4)
        self.run("cache show %k", 0)
        self.run("cache expire %k", 0)
        self.run("cache run %k --ttl 60s", 0, "drawn", command=draw)
        if self.out == first:
            self.faults.append("wrong: cache run after expire replayed what was expired")
        return self.run("cache remove %k", 0)

    def batches(self):
        members = [b"member-%d-%s" % (i, b"x" * (i % 90)) for i in range(300)]
        if not self.run("table add %b -", 0, given=b"\n".join(members) + b"\n"):
            self.run("counter incr -", 0, given=f"{self.prefix}n\n".encode() * 3)
            return self.skip(2)
        fetched = self.run("table fetch %b -o value", 0, *(member.decode() for member in members[:20]))
        if fetched and self.out.count("member-") != len(members):
            self.faults.append(f"wrong: table fetch after a batch: {self.out.count('member-')} of {len(members)}")
        self.run("counter incr -", 0, given=b"".join(b"%sn%d\n" % (self.prefix.encode(), i % 100) for i in range(300)))
        return self.run("counter get " + " ".join(f"%n{i}" for i in range(0, 100, 7)), 0, '"value":3')

    def items(self):
        self.run("item set %it first", 0, '"stored":true')
        self.run("item get %it", 0, '"value":"first"')
        self.run("item set %it second --if-absent", 1, '"stored":false')
        self.run("item set %none second --if-present", 1, '"stored":false')
        self.run("item set %it second --if-present --flags 7", 0, '"stored":true')
        self.run("item show %it", 0, '"flags":7', '"size_bytes":6')
        self.run("item get %none", 1)
        self.run("item set %em -", 0, '"size_bytes":0')
        self.run("item get %em", 0, '"value":""')
        self.run("where --probe %it", 0, '"verdict":"ok"')
        self.run("item get %it %em -o value", 0, "second\n\n")
        self.run("item show %it %em %none", 1, '"size_bytes":6', '"size_bytes":0', '"found":false')
        self.run("item remove %it %em", 0, '"removed":true')
        self.run("item remove %it", 1, '"removed":false')
        self.run("item get %it", 1)
        self.run("where --probe %it", 1, '"verdict":"missing"')
        if self.run("item set %ttl-it short --ttl 1h", 0, '"stored":true'):
            self.run("item touch %ttl-it --ttl 2h", 0, '"touched":true')
            self.run("item remove %ttl-it", 0, '"removed":true')
        else:
            self.skip(2)

    def others(self):
        before = len(self.faults)
        self.run("servers", 0, '"up":true')
        if len(self.faults) > before and any(f'"error":"{why}"' in self.out for why in self.reasons()):
            self.refused.append(self.faults.pop())  # it says what the others said
        self.run("where %c", 0)

    def line(self):
        kinds = [fault.split(":")[0] for fault in self.faults]
        counts = {"checks": self.checks, "works": self.works, "refused": len(self.refused), "not applicable": self.not_applicable}
        counts.update({kind: kinds.count(kind) for kind in ("unknown", "wrong", "hang", "crash")})
        return ", ".join(f"{count} {name}" for name, count in counts.items())
