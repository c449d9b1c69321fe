"""An older binary beside the present one, row by row: each row's runs alternate, the limit's among them."""
import glob
import os
import resource
import shutil
import statistics
import subprocess
import time

import stage

SIZES = (3_000, 30_000, 300_000)


def lines(count, suffix=""):
    return "".join(f"n{i}{suffix}\n" for i in range(1, count + 1)).encode()


class Comparison:
    """Rows of one run: per row a fresh pool, and every round runs older, present and limit, in turn in either order."""

    def __init__(self, stage_, older):
        self.stage, self.binaries, self.rounds = stage_, {"before": older, "now": stage_.mcds}, 3 if stage_.quick else 5
        self.which = "now"  # the one that runs

    def timed(self, run, pool):
        """Seconds, and seconds that clients and servers had a core: the latter are the same on a busy machine."""
        used, started = work(pool), time.monotonic()
        seconds = run()
        return (seconds or time.monotonic() - started), work(pool) - used

    def ours(self, which, words, data, servers, codes):
        self.which, self.stage.mcds = which, self.binaries[which]
        return self.stage.run(words(), data, servers, codes)

    def row(self, name, words, data, servers, limit=None, pool=None, codes=(0,)):
        """`words` are made anew for each run; a limit may return the seconds that count."""
        runs = {which: lambda which=which: self.ours(which, words, data, servers, codes) for which in self.binaries}
        if limit:
            runs["limit"] = limit
        taken = {which: [] for which in runs}
        for number in range(self.rounds + 1):
            for which in sorted(runs, reverse=number % 2 == 0):
                one = self.timed(runs[which], pool)
                if number > 0:  # the first warms up
                    taken[which].append(one)
        self.add(name, taken)

    def add(self, name, taken):
        def ratio(first, second, column):
            pairs = [a[column] / b[column] for a, b in zip(taken.get(first, []), taken[second]) if b[column] > 0]
            return f"{statistics.median(pairs):.2f}" if pairs else ""

        beside = [ratio("limit", which, column) for column in (0, 1) for which in ("before", "now")]
        self.print(name, *beside, ratio("now", "before", 0), ratio("now", "before", 1))

    @staticmethod
    def print(*cells):
        print("| " + " | ".join(cells) + " |", flush=True)


def work(pool):
    """Seconds on a core, so far: of all children that have ended, and of the pool's servers."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    servers = [path for process in (pool.processes if pool else []) for path in glob.glob(f"/proc/{process.pid}/task/*/schedstat")]
    return children.ru_utime + children.ru_stime + sum(int(open(path, encoding="ascii").read().split()[0]) for path in servers) / 1e9


def pipeline_on(stage_, servers, kind, count):
    """The same on all servers at once: the seconds of the slowest."""
    paths = [server.removeprefix("unix:") for server in servers.split(",")]
    words = [stage_.tool("pipeline")]
    running = [subprocess.Popen([*words, path, kind, str(count)], stdout=subprocess.PIPE, text=True) for path in paths]
    return max(float(one.communicate(timeout=stage.TIME_LIMIT)[0]) for one in running)


def cold(comparison):
    stage_ = comparison.stage
    words = [stage_.tool("spawn"), "60" if stage_.quick else "400", stage_.tool("floor"), stage_.path, "c:floor"]
    for which, binary in comparison.binaries.items():
        # A copy, as installing makes it: what the linker wrote is mapped in smaller pieces.
        words += ["--", shutil.copy(binary, os.path.join(stage_.directory, f"mcds.{which}")), "counter", "incr", "c"]
    out = subprocess.run(words, env=stage_.environment, capture_output=True, text=True, check=True).stdout
    floor, before, now = (float(line.split()[0]) for line in out.splitlines())
    comparison.print("counter incr, cold: the floor beside it", f"{floor / before:.2f}", f"{floor / now:.2f}", "", "", f"{now / before:.2f}", "")


def batch(comparison, name, words, suffix, kind, servers=1, fill=None):
    """`words` of a run, given the number of the run: what is new each time needs a name of its own."""
    for count in SIZES[:2] if comparison.stage.quick else SIZES:
        with stage.Memcacheds(servers) as pool:
            if kind in ("incr", "append"):
                pipeline_on(comparison.stage, pool.servers, "set", count)
            if fill:
                comparison.stage.run(fill, lines(count, suffix), pool.servers)
            number = iter(range(1000))
            comparison.row(f"{name}, {count} lines", lambda: words(next(number)), lines(count, suffix), pool.servers,
                           lambda: pipeline_on(comparison.stage, pool.servers, kind, count), pool)


def batches(comparison):
    batch(comparison, "counter incr -", lambda _: ["counter", "incr", "-"], "", "incr")
    batch(comparison, "counter limit -", lambda _: ["counter", "limit", "-", "--max", "1000000", "--per", "1h"], "", "incr")
    batch(comparison, "eventlog put -", lambda _: ["eventlog", "put", "b", "-", "--chunk", "1m"], "", "append")
    there = ["hash", "set", "b", "-"]
    batch(comparison, "hash set -, fields there are", lambda _: there, "\t12345678", "set", fill=there)
    batch(comparison, "hash set -, new fields", lambda n: ["hash", "set", f"b{n}", "-"], "\t12345678", "set")
    batch(comparison, "table add -, new members", lambda n: ["table", "add", f"b{n}", "-"], "", "set")
    batch(comparison, "table add -, new, two copies", lambda n: ["table", "add", f"b{n}", "-", "--copies", "2"], "", "set", servers=2)


def fetch(comparison):
    stage_ = comparison.stage
    for count in SIZES[:2] if stage_.quick else SIZES:
        with stage.Memcacheds(1) as pool:
            stage_.run(["table", "add", "whole", "-"], lines(count), pool.servers)
            path = pool.servers.removeprefix("unix:")
            keys = stage_.keys_fetched("table", "whole", pool.servers)
            comparison.row(f"table fetch, {count} members", lambda: ["table", "fetch", "whole"], b"", pool.servers,
                           lambda: float(subprocess.run([stage_.tool("pipeline"), path, "get", str(count), keys], capture_output=True,
                                                        text=True, timeout=stage.TIME_LIMIT, check=True).stdout), pool)


def placement(comparison):
    stage_ = comparison.stage
    servers = ",".join(f"10.0.0.{i}" for i in range(1, 11))
    has_libmemcached = stage_.generate_hash_seconds(1000) is not None
    for count in SIZES[:2] if stage_.quick else SIZES:
        for mode in ("value", "json"):
            limit = (lambda: stage_.generate_hash_seconds(count)) if has_libmemcached else None
            comparison.row(f"where -, {mode}, {count} keys", lambda: ["where", "-", "-o", mode], lines(count), servers, limit)


def items(comparison):
    """Saving all items of a server to a file, and putting them back."""
    stage_ = comparison.stage
    for count in SIZES[1:2] if stage_.quick else SIZES[1:]:
        with stage.Memcacheds(1) as pool, stage.Memcacheds(1) as other:
            pipeline_on(stage_, pool.servers, "set", count)
            # The form of the file may differ.
            comparison.row(f"item save, {count} items", lambda: ["item", "save", "--all", f"{stage_.directory}/{comparison.which}"], b"", pool.servers,
                           lambda: pipeline_on(stage_, pool.servers, "get", count), pool)
            comparison.row(f"item load, {count} items", lambda: ["item", "load", "--all", "--overwrite", f"{stage_.directory}/{comparison.which}"], b"", other.servers,
                           lambda: pipeline_on(stage_, other.servers, "set", count), other)


def pools(comparison):
    """What looks at two servers: all keys of which the values differ, and half of the keys to be moved."""
    stage_ = comparison.stage
    for count in SIZES[:2] if stage_.quick else SIZES:
        with stage.Memcacheds(2) as pool:
            pipeline_on(stage_, pool.servers, "set", count)
            pipeline_on(stage_, "unix:" + pool.paths[1], "append", count)
            comparison.row(f"where --probe --live, {count} keys that differ", lambda: ["where", "--probe", "--live"], b"", pool.servers,
                           lambda: pipeline_on(stage_, pool.servers, "get", count), pool, codes=(2,))
        with stage.Memcacheds(2) as pool:
            first = "unix:" + pool.paths[0]
            pipeline_on(stage_, first, "set", count)

            def moving():
                pool.empty(pool.paths[1])
                return ["ring", "move", "--to", pool.servers]

            comparison.row(f"ring move, {count} keys", moving, b"", first, lambda: pipeline_on(stage_, first, "get", count), pool)


def compare(stage_, older):
    comparison = Comparison(stage_, older)
    print("\n| | limit : before | limit : now | on cores, limit : before | limit : now | now : before | on cores |\n|---" + "|---:" * 6 + "|")
    started = time.monotonic()
    for section in (cold, batches, fetch, placement, items, pools):
        section(comparison)
    print(f"\n{comparison.rounds} rounds, alternating, medians of the rounds' ratios; {time.monotonic() - started:.0f} s")
