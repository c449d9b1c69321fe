#!/usr/bin/env python3
"""mcds cache run as many processes: one rebuild, nobody waits for it, no invalidation undone, whoever dies or freezes.

Usage: cache_test.py BUILD_DIR; MCDS_TEST_SECONDS sets how long readers and invalidators run (5), MCDS_TEST_SEED their choices.

Commands that are to last block on a FIFO until the test opens it: no test relies on how fast the machine is.
"""
import contextlib
import json
import os
import pty
import random
import signal
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from checks import cases, check, finish, passes, tested
from program import MCDS, Workplace, alive, environment, wait_for
from real_servers import ask, end, keys, start_memcached

CALLERS = 64
SECONDS = float(os.environ.get("MCDS_TEST_SECONDS", "5"))
SEED = int(os.environ.get("MCDS_TEST_SEED", str(random.randrange(1 << 32))))


class World(Workplace):
    def __init__(self, directory):
        super().__init__(directory, environment(MCDS_SERVERS=f"m1=unix:{directory}/m1.sock"))
        self.start_server()

    def start_server(self):
        self.server = start_memcached(self.path("m1.sock"), "-m", "64", "-t", "2")

    def write(self, name, text):
        with open(self.path(name + ".new"), "w", encoding="utf-8") as file:
            file.write(text)
        os.rename(self.path(name + ".new"), self.path(name))

    def start(self, *words, **options):
        return super().start(MCDS, "cache", *words, **options)

    def end(self):
        super().end()
        end(self.server)


# Says that it runs, waits to be let go, prints. Who meets the writer of the one before, which is about to close, reads nothing and
# waits again.
BLOCKED = 'echo $$ >>runs; until read word <go; do :; done; echo "$word"'


def blocked_rebuild(world, *options):
    os.mkfifo(world.path("go"))
    rebuilder = world.start("run", "k", *options, "--", "sh", "-c", BLOCKED)
    wait_for(lambda: world.read("runs").endswith("\n"))
    return rebuilder


def let_go(world, word):
    with open(world.path("go"), "w", encoding="utf-8") as file:
        file.write(word + "\n")


def runs(world):
    with contextlib.suppress(FileNotFoundError):
        return world.read("runs").split()
    return []


@tested
def expired_entry_is_rebuilt_once_and_nobody_waits_longer(world):
    assert world.run("run", "k", "--", "echo", "old")[0] == 0
    assert world.run("expire", "k")[0] == 0
    os.mkfifo(world.path("go"))
    began = time.monotonic()
    callers = [world.start("run", "k", "--wait", "500ms", "--", "sh", "-c", BLOCKED) for _ in range(CALLERS)]
    # All but one return while the rebuild is still blocked.
    wait_for(lambda: sum(caller.poll() is not None for caller in callers) == CALLERS - 1)
    waited = time.monotonic() - began
    assert len(runs(world)) == 1, runs(world)
    stale = [caller.communicate()[0] for caller in callers if caller.poll() is not None]
    assert stale == ["old\n"] * (CALLERS - 1), set(stale)
    let_go(world, "new")
    assert sorted(caller.wait(timeout=20) for caller in callers) == [0] * CALLERS
    assert world.run("run", "k", "--", "echo", "never")[1] == "new\n"
    assert len(runs(world)) == 1
    return f"{CALLERS - 1} served stale within {waited:.2f} s of the start of {CALLERS} processes"


@tested
def each_expired_tag_costs_a_herd_one_rebuild(world):
    """Tags expire under 80 callers: each time one of them rebuilds, and all get what was begun after the last of it."""
    tags = ("--tag", "T", "--tag", "U")
    assert world.run("run", "k", *tags, "--", "echo", "old")[0] == 0
    assert world.run("expire", "--tag", "T")[0] == 0
    os.mkfifo(world.path("go"))
    callers = [world.start("run", "k", "--wait", "60s", *tags, "--", "sh", "-c", BLOCKED) for _ in range(80)]
    for rebuild, tag in enumerate("TUT", 1):
        wait_for(lambda: len(runs(world)) == rebuild)  # noqa: B023
        assert world.run("expire", "--tag", tag)[0] == 0
        let_go(world, f"overtaken {rebuild}")
    wait_for(lambda: len(runs(world)) == 4)
    let_go(world, "new")
    got = sorted(caller.communicate(timeout=60)[0] for caller in callers)
    assert got == ["new\n"] * 77 + [f"overtaken {rebuild}\n" for rebuild in (1, 2, 3)], got
    assert len(runs(world)) == 4, runs(world)
    assert world.run("run", "k", *tags, "--", "echo", "never")[1] == "new\n"


@tested
def cold_entry_is_built_once_and_all_get_it(world):
    os.mkfifo(world.path("go"))
    callers = [world.start("run", "k", "--wait", "inf", "--", "sh", "-c", BLOCKED) for _ in range(CALLERS)]
    wait_for(lambda: runs(world))
    let_go(world, "new")
    outputs = [caller.communicate(timeout=60)[0] for caller in callers]
    assert outputs == ["new\n"] * CALLERS, set(outputs)
    assert len(runs(world)) == 1, runs(world)


@tested
def killed_rebuilder_is_replaced_within_the_rebuild_ttl(world):
    rebuilder = blocked_rebuild(world, "--rebuild-ttl", "4s")
    child = int(runs(world)[0])
    waiting = [world.start("run", "k", "--wait", "inf", "--rebuild-ttl", "4s", "--", "sh", "-c", BLOCKED)
               for _ in range(4)]
    rebuilder.kill()
    killed = time.monotonic()
    lock = ask(world.path("m1.sock"), "mg cache:k:rebuild t")
    assert lock.startswith(b"HD t") and int(lock[4:]) <= 4, lock
    wait_for(lambda: not alive(child))
    wait_for(lambda: len(runs(world)) == 2)
    after = time.monotonic() - killed
    assert after < 8, f"{after}: others waited for a second lock, or longer"
    let_go(world, "next")
    outputs = [caller.communicate(timeout=60)[0] for caller in waiting]
    assert outputs == ["next\n"] * 4, outputs
    assert len(runs(world)) == 2
    return f"next rebuild {after:.2f} s after the kill (rebuild ttl 4 s)"


@tested
def long_rebuild_keeps_its_lock_and_its_placeholder(world):
    rebuilder = blocked_rebuild(world, "--rebuild-ttl", "4s")
    time.sleep(7)
    assert world.run("run", "k", "--wait", "0", "--", "echo", "never")[0] == 75
    let_go(world, "slow")
    assert rebuilder.wait(timeout=20) == 0
    assert world.run("run", "k", "--", "echo", "never")[1] == "slow\n"


@tested
def long_rebuild_whose_lock_is_gone_is_still_stored(world):
    rebuilder = blocked_rebuild(world, "--rebuild-ttl", "4s")
    (lock,) = [key for key in keys(world.path("m1.sock")) if key != "cache:k"]
    ask(world.path("m1.sock"), f"delete {lock}")
    time.sleep(9)
    let_go(world, "slow")
    assert rebuilder.wait(timeout=20) == 0
    assert world.run("run", "k", "--", "echo", "never")[1] == "slow\n"


@tested
def deadline_sends_nobody_past_the_rebuilder(world):
    assert world.run("run", "k", "--ttl", "1s", "--stale", "1m", "--", "echo", "old")[0] == 0
    time.sleep(1.1)
    rebuilder = blocked_rebuild(world, "--ttl", "1s")
    assert world.run("run", "k", "--deadline", "600ms", "--", "echo", "beside")[:2] == (0, "old\n")
    assert world.run("run", "k", "--deadline", "600ms", "--on-busy", "fail", "--", "echo", "beside")[0] == 75
    let_go(world, "new")
    assert rebuilder.wait(timeout=20) == 0


@tested
def failing_output_is_never_stored_nor_hammered(world):
    assert world.run("run", "k", "--", "echo", "old")[0] == 0
    assert world.run("expire", "k")[0] == 0
    began = time.monotonic()
    callers = [world.start("run", "k", "--wait", "0", "--", "sh", "-c", "echo $$ >>runs; echo bad; exit 9")
               for _ in range(CALLERS)]
    results = [(caller.wait(timeout=60), caller.communicate()[0]) for caller in callers]
    elapsed = time.monotonic() - began
    failed = [result for result in results if result[0] != 0]
    assert set(failed) <= {(9, "bad\n")} and {output for code, output in results if code == 0} <= {"old\n"}, results
    assert 1 <= len(runs(world)) <= 1 + elapsed, (len(runs(world)), elapsed)
    assert world.run("show", "k", "-o", "value")[1] == "old\n"
    return f"{len(failed)} of {CALLERS} callers saw the failure, the others the stale output"


@tested
def server_that_dies_or_freezes_meanwhile_costs_only_the_cache(world):
    rebuilder = blocked_rebuild(world)
    end(world.server)
    let_go(world, "kept going")
    assert rebuilder.communicate(timeout=60)[0] == "kept going\n"
    assert rebuilder.returncode == 0
    world.start_server()
    world.server.send_signal(signal.SIGSTOP)
    code, output, errors = world.run("run", "k", "--timeout", "200ms", "--", "sh", "-c", "echo open; exit 4")
    assert (code, output) == (4, "open\n") and "without the cache" in errors, (code, output, errors)


@tested
def signals_reach_the_command_while_a_reader_holds_it_up(world):
    # Nobody reads the pipe: the command is held up, the lock is renewed, and signals still arrive.
    rebuilder = world.start("run", "k", "--rebuild-ttl", "4s", "--", "sh", "-c", "echo $$ >>runs; exec yes")
    child = int(wait_for(lambda: runs(world))[0])
    time.sleep(4)
    assert json.loads(world.run("show", "k")[1])["rebuilding"] is True
    rebuilder.send_signal(signal.SIGTERM)
    wait_for(lambda: not alive(child))
    rebuilder.stdout.read(1 << 20)
    rebuilder.communicate(timeout=20)
    assert rebuilder.returncode == 128 + signal.SIGTERM, rebuilder.returncode


@tested
def ctrl_c_on_a_terminal_goes_to_the_command(world):
    pid, master = pty.fork()
    if pid == 0:
        os.chdir(world.directory)
        os.execve(MCDS, [MCDS, "cache", "run", "k", "--", "sh", "-c",
                         "trap 'echo stopped; exit 5' INT; echo $$ >>runs; while :; do sleep 0.05; done"], world.environment)
    wait_for(lambda: runs(world))
    os.write(master, b"\x03")
    shown = b""
    with contextlib.suppress(OSError):
        while chunk := os.read(master, 4096):
            shown += chunk
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 5
    os.close(master)
    assert b"stopped" in shown, shown


@tested
def invalidations_are_never_undone(world):
    """A source that changes; each change is followed by expire or remove. Once that has answered, nobody may get less."""
    choice = random.Random(SEED)
    world.write("source", "0")
    command = ("run", "k", "--tag", "T", "--ttl", "1s", "--wait", "2s", "--on-busy", "wait", "--rebuild-ttl", "4s", "--",
               "sh", "-c", "v=$(cat source); sleep 0.03; echo $v")
    readers = {}
    version = acknowledged = fresh = killed = 0
    end = time.monotonic() + SECONDS
    while time.monotonic() < end or readers:
        while len(readers) < 8 and time.monotonic() < end:
            readers[world.start(*command)] = acknowledged
        for reader, oldest in list(readers.items()):
            if reader.poll() is None:
                continue
            output = reader.communicate()[0]
            if reader.returncode == 0:
                assert int(output) >= oldest, f"seed {SEED}: {output.strip()} after {oldest} was acknowledged"
                fresh += 1
            assert reader.returncode in (0, 75, -signal.SIGKILL), reader.returncode
            del readers[reader]
            world.started.remove(reader)
        if choice.random() < 0.1 and readers:
            choice.choice(list(readers)).kill()
            killed += 1
        if (choice.random() < 0.3 or version == 0) and time.monotonic() < end:
            version += 1
            world.write("source", str(version))
            code = world.run(*choice.choice([("expire", "k"), ("remove", "k"), ("expire", "--tag", "T")]))[0]
            assert code in (0, 1), code
            acknowledged = version
        time.sleep(0.005)
    assert fresh > 0 and acknowledged > 0
    return f"seed {SEED}: {version} invalidations, {fresh} answers, {killed} readers killed"


if __name__ == "__main__":
    for case in cases:
        check(passes(case, World), case.__name__)
    finish()
