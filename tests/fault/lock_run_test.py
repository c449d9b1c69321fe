#!/usr/bin/env python3
"""mcds lock run and sandbox as processes: whatever dies or freezes, no orphan stays and the child stops in time.

Usage: lock_run_test.py BUILD_DIR
"""
import concurrent.futures
import contextlib
import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from checks import cases, passes, tested
from program import MCDS, Workplace, alive, clean_environment, wait_for
from real_servers import end, item, start_memcached

PATIENCE_S = 60


class World(Workplace):
    def __init__(self, directory):
        # The timeout is the usual one: leases are told from it.
        super().__init__(directory, clean_environment(MCDS_SERVERS=f"m1=unix:{directory}/m1.sock"))
        self.server = start_memcached(self.path("m1.sock"), "-m", "16")

    def restart(self):
        end(self.server)
        self.server = start_memcached(self.path("m1.sock"), "-m", "16")

    def written(self, name):
        return wait_for(lambda: self.read(name).endswith("\n") and self.read(name).strip())

    def start(self, *words, **options):
        return super().start(MCDS, *words, **options)

    def held(self):
        return item(self.path("m1.sock"), "lock:l") is not None

    def end(self):
        super().end()
        end(self.server)


def wait_for_file(world, name):
    wait_for(lambda: os.path.exists(world.path(name)), name)


# Writes its own and its child's process id, then waits.
FAMILY = 'sleep 100 & echo $$ $! > pids.new; mv pids.new pids; wait'


@tested
def exit_codes_pass_through(world):
    for code in (0, 1, 3, 64, 75, 79, 255):
        assert world.run("lock", "run", "l", "--", "sh", "-c", f"exit {code}")[0] == code
    for number in (1, 2, 6, 9, 15):
        assert world.run("lock", "run", "l", "--", "sh", "-c", f"kill -{number} $$")[0] == 128 + number
    assert world.run("lock", "run", "l", "--", "no-such-command")[0] == 127
    assert world.run("lock", "run", "l", "--", "/")[0] == 126
    assert not world.held()


@tested
def the_child_stops_before_the_lock_ends_when_the_server_is_frozen(world):
    start = time.monotonic()
    process = world.start("lock", "run", "l", "--ttl", "4s", "--grace", "500ms", "--", "sh", "-c",
                          "trap '' TERM; " + FAMILY)
    pids = world.written("pids").split()
    world.server.send_signal(signal.SIGSTOP)
    wait_for(lambda: not any(alive(pid) for pid in pids))
    assert time.monotonic() - start < 4, "the child outlived the lease"
    assert process.wait(PATIENCE_S) == 79
    error = process.stderr.read()
    assert '"lock_lost"' in error and "m1.sock" in error, "the cause and the server are not named: " + error


@tested
def a_renewal_that_blocks_longer_than_the_lease_does_not_delay_the_stop(world):
    start = time.monotonic()
    process = world.start("--timeout", "8s", "lock", "run", "l", "--ttl", "4s", "--grace", "500ms", "--", "sh", "-c",
                          FAMILY)
    pids = world.written("pids").split()
    world.server.send_signal(signal.SIGSTOP)
    wait_for(lambda: not any(alive(pid) for pid in pids))
    assert time.monotonic() - start < 4
    assert process.wait(PATIENCE_S) == 79


@tested
def a_frozen_mcds_is_stopped_by_its_guardian_in_time(world):
    start = time.monotonic()
    process = world.start("lock", "run", "l", "--ttl", "3s", "--", "sh", "-c", FAMILY)
    pids = world.written("pids").split()
    process.send_signal(signal.SIGSTOP)
    wait_for(lambda: not any(alive(pid) for pid in pids))
    assert time.monotonic() - start < 3
    process.send_signal(signal.SIGCONT)
    assert process.wait(PATIENCE_S) == 79


@tested
def a_lock_lost_to_a_restart_stops_the_child(world):
    process = world.start("lock", "run", "l", "--ttl", "3s", "--", "sh", "-c", FAMILY)
    pids = world.written("pids").split()
    world.restart()
    assert process.wait(PATIENCE_S) == 79
    assert not any(alive(pid) for pid in pids)


@tested
def a_server_that_is_back_in_time_with_another_holder_is_a_loss(world):
    process = world.start("lock", "run", "l", "--ttl", "3s", "--", "sh", "-c", FAMILY)
    world.written("pids")
    world.restart()
    assert world.run("lock", "acquire", "l")[0] == 0
    assert process.wait(PATIENCE_S) == 79
    assert world.held(), "the rival's lock was removed"


@tested
def on_lost_warn_lets_the_child_finish(world):
    process = world.start("lock", "run", "l", "--ttl", "3s", "--on-lost", "warn", "--", "sh", "-c",
                          "echo > pids; sleep 3.5; exit 5")
    wait_for_file(world, "pids")
    world.restart()
    assert process.wait(PATIENCE_S) == 5
    assert "the lock was lost" in process.stderr.read()


@tested
def a_short_outage_is_survived(world):
    process = world.start("lock", "run", "l", "--ttl", "6s", "--grace", "500ms", "--", "sleep", "5")
    wait_for(world.held)
    time.sleep(1.5)
    world.server.send_signal(signal.SIGSTOP)
    time.sleep(1.2)
    world.server.send_signal(signal.SIGCONT)
    assert process.wait(PATIENCE_S) == 0, process.stderr.read()
    assert not world.held()


@tested
def a_killed_mcds_leaves_no_orphan(world):
    process = world.start("lock", "run", "l", "--", "sh", "-c", "trap '' TERM HUP; " + FAMILY)
    pids = world.written("pids").split()
    process.kill()
    wait_for(lambda: not any(alive(pid) for pid in pids))


@tested
def a_termed_mcds_ends_the_child_and_frees_the_lock(world):
    process = world.start("lock", "run", "l", "--", "sh", "-c",
                          "trap 'echo got > term; exit 7' TERM; echo > ready; while :; do sleep 0.05; done")
    wait_for_file(world, "ready")
    process.send_signal(signal.SIGTERM)
    assert process.wait(PATIENCE_S) == 7
    assert world.written("term") == "got"
    assert not world.held()


@tested
def signals_reach_the_whole_group(world):
    process = world.start("lock", "run", "l", "--", "sh", "-c",
                          "for s in HUP INT QUIT USR1 USR2 WINCH; do trap \"echo $s >> got\" $s; done;"
                          "echo > ready; while [ ! -e end ]; do sleep 0.02; done; exit 9")
    wait_for_file(world, "ready")
    for number, name in enumerate(("HUP", "INT", "QUIT", "USR1", "USR2", "WINCH"), 1):
        process.send_signal(getattr(signal, f"SIG{name}"))
        wait_for(lambda: len(world.read("got").split()) == number and world.read("got").split()[-1] == name)
    open(world.path("end"), "w", encoding="utf-8").close()
    assert process.wait(PATIENCE_S) == 9


@tested
def a_hangup_ignored_by_nohup_stays_ignored(world):
    process = world.start("lock", "run", "l", "--", "sh", "-c", "echo > ready; sleep 0.3; exit 4",
                          preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    wait_for_file(world, "ready")
    process.send_signal(signal.SIGHUP)
    assert process.wait(PATIENCE_S) == 4


@tested
def max_run_kills_a_child_that_ignores_term(world):
    start = time.monotonic()
    process = world.start("lock", "run", "l", "--max-run", "1s", "--grace", "300ms", "--", "sh", "-c",
                          "trap '' TERM; " + FAMILY)
    pids = world.written("pids").split()
    assert process.wait(PATIENCE_S) == 124
    assert time.monotonic() - start >= 1.3
    assert not any(alive(pid) for pid in pids)
    assert not world.held()


@tested
def leftovers_of_the_group_are_ended_before_the_lock_is_given_back(world):
    status, _, _ = world.run("lock", "run", "l", "--grace", "300ms", "--", "sh", "-c",
                             "(trap '' TERM; sleep 100) & echo $! > pid; sleep 0.1; exit 6")
    assert status == 6
    assert not alive(world.read("pid").strip())
    assert not world.held()


@tested
def the_output_is_the_childs_alone(world):
    assert world.run("lock", "run", "l", "--", "echo", "-n", "$HOME  *")[1:] == ("$HOME  *", "")
    # No process of ours keeps the pipe open.
    done = subprocess.run([MCDS, "lock", "run", "l", "--", "cat"], env=world.environment, input=b"a\0b", timeout=PATIENCE_S,
                          capture_output=True, check=True)
    assert done.stdout == b"a\0b"


@tested
def the_child_knows_its_lock(world):
    _, out, _ = world.run("lock", "run", "l", "--", "sh", "-c", "echo $MCDS_LOCK_NAME $MCDS_LOCK_TOKEN $MCDS_LOCK_FENCE")
    assert re.fullmatch(r"l [a-f][0-9a-f]{15} \d{16}\n", out), out
    last = int(out.split()[2])
    assert int(world.run("lock", "run", "l", "--", "sh", "-c", "echo $MCDS_LOCK_FENCE")[1]) > last


@tested
def nothing_runs_while_another_holds_the_lock(world):
    assert world.run("lock", "acquire", "l")[0] == 0
    status, out, error = world.run("lock", "run", "l", "--", "touch", world.path("ran"))
    assert (status, out) == (75, "") and json.loads(error)["error"]["code"] == "try_again"
    assert world.run("lock", "run", "l", "-E", "0", "--", "touch", world.path("ran")) == (0, "", "")
    assert not os.path.exists(world.path("ran"))


@tested
def if_down_run_runs_without_the_lock(world):
    end(world.server)
    assert world.run("lock", "run", "l", "--", "true")[0] == 69
    status, out, error = world.run("lock", "run", "l", "--if-down", "run", "--", "sh", "-c", "echo $MCDS_LOCK_TOKEN; exit 3")
    assert (status, out) == (3, "\n") and "without the lock" in error


@tested
def a_server_that_refuses_the_lock_is_not_down(world):
    server = start_memcached(world.path("m2.sock"), "-m", "16", "-C")
    status, _, error = world.run("-s", f"unix:{world.path('m2.sock')}", "lock", "run", "l", "--if-down", "run", "--", "touch",
                                 world.path("ran"))
    end(server)
    assert status == 76 and json.loads(error)["error"]["code"] == "refused", (status, error)
    assert not os.path.exists(world.path("ran"))


@tested
def a_system_without_descriptors_leaves_no_lock(world):
    statuses = set()
    for limit in range(4, 24):
        status = subprocess.run(["sh", "-c", f"ulimit -n {limit}; exec mcds lock run l -- true"], timeout=PATIENCE_S,
                                env=world.environment, stdin=subprocess.DEVNULL, capture_output=True,
                                check=False).returncode
        statuses.add(status)
        assert not world.held(), f"held after {status} with {limit} descriptors"
    assert statuses <= {0, 69, 71, 78, 126, 127} and {0, 71} <= statuses, statuses


@tested
def once_per_and_min_hold_keep_the_lock(world):
    assert world.run("lock", "run", "l", "--once-per", "1h", "--", "false")[0] == 1
    assert not world.held(), "kept after a failure"
    assert world.run("lock", "run", "l", "--min-hold", "1s", "--", "false")[0] == 1
    assert world.held()
    assert world.run("lock", "run", "l", "-w", "10s", "--once-per", "1h", "--", "true")[0] == 0
    assert world.run("lock", "run", "l", "--", "true")[0] == 75
    shown = json.loads(world.run("lock", "show", "l")[1])
    assert 3590 < shown["ttl_s"] <= 3603 and "finished_at" in shown["holder"]


@tested
def a_server_that_stands_still_as_the_command_ends_costs_no_hold(world):
    """The hold was given up after two timeouts, and the job ran again when the ttl was over."""
    for option in ("--once-per", "--min-hold"):
        name = "l" + option[1:]
        process = world.start("lock", "run", name, option, "1h", "--timeout", "200ms", "--report", "report", "--",
                              "sh", "-c", "echo x >ran; while [ ! -e go ]; do sleep 0.02; done; rm go ran")
        wait_for(lambda: world.written("ran"))
        world.server.send_signal(signal.SIGSTOP)
        with open(world.path("go"), "w", encoding="utf-8"):
            pass
        wait_for(lambda: not os.path.exists(world.path("ran")))
        time.sleep(2)
        world.server.send_signal(signal.SIGCONT)
        assert process.wait(PATIENCE_S) == 0, process.stderr.read()
        assert json.loads(world.read("report"))["outcome"] == "kept", world.read("report")
        assert json.loads(world.run("lock", "show", name)[1])["ttl_s"] > 3500

@tested
def two_at_once_run_one_after_the_other(world):
    script = "test ! -e in && touch in && sleep 0.05 && rm in"
    processes = [world.start("lock", "run", "l", "-w", "inf", "--", "sh", "-c", script) for _ in range(8)]
    assert [process.wait(PATIENCE_S) for process in processes] == [0] * 8


class Terminal:
    """An interactive bash on a terminal of its own."""

    def __init__(self, world):
        self.pid, self.master = pty.fork()
        if self.pid == 0:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            os.chdir(world.directory)
            os.execve("/bin/bash", ["bash", "--norc", "--noprofile", "-i"],
                      {**world.environment, "PS1": "ready> ", "TERM": "xterm", "HISTFILE": ""})
        self.seen = ""
        self.expect("ready> ")

    def send(self, text):
        os.write(self.master, text.encode())

    def expect(self, text, limit=PATIENCE_S):
        deadline = time.monotonic() + limit
        while text not in self.seen:
            left = deadline - time.monotonic()
            assert left > 0 and select.select([self.master], [], [], left)[0], f"no {text!r} in {self.seen!r}"
            self.seen += os.read(self.master, 65536).decode("utf-8", "replace")
        before, self.seen = self.seen.split(text, 1)
        return before

    def line(self, text, answer):
        self.send(text + "\n")
        self.expect("\n")
        return self.expect(answer)

    def close(self):
        os.kill(self.pid, signal.SIGKILL)
        os.close(self.master)
        os.waitpid(self.pid, 0)


def on_terminal(function):
    def run(world):
        terminal = Terminal(world)
        try:
            function(world, terminal)
        finally:
            terminal.close()
    run.__name__ = function.__name__
    cases.append(run)
    return run


@on_terminal
def control_c_ends_the_child_as_without_us(world, terminal):
    terminal.send("mcds lock run l -- sh -c 'echo up; exec sleep 100'\n")
    terminal.expect("up\r\n")
    terminal.send("\x03")
    terminal.expect("ready> ")
    terminal.line("echo code $?", "code 130")
    assert not world.held()


@on_terminal
def control_c_is_the_childs_to_handle(world, terminal):
    terminal.send("mcds lock run l -- sh -c 'trap \"echo caught; exit 6\" INT; echo up; while :; do sleep 0.02; done'\n")
    terminal.expect("up\r\n")
    terminal.send("\x03")
    terminal.expect("caught")
    terminal.expect("ready> ")
    terminal.line("echo code $?", "code 6")


@on_terminal
def control_z_and_fg(world, terminal):
    terminal.send("mcds lock run l -- sh -c 'echo up; read a; echo got $a; read b; echo got $b'\n")
    terminal.expect("up\r\n")
    for word in ("one", "two"):
        terminal.send("\x1a")
        terminal.expect("Stopped")
        terminal.expect("ready> ")
        terminal.send("fg\n")
        terminal.expect("mcds lock run")
        terminal.expect("\n")
        terminal.send(word + "\n")
        terminal.expect(f"got {word}")
    terminal.expect("ready> ")
    terminal.line("echo code $?", "code 0")


@on_terminal
def control_z_and_bg(world, terminal):
    # No command: dash is stuck when one is stopped between vfork and exec, with or without us.
    os.mkfifo(world.path("go"))
    terminal.send("mcds lock run l -- sh -c 'echo up; read a <go; echo $a > out'\n")
    terminal.expect("up\r\n")
    terminal.send("\x1a")
    terminal.expect("Stopped")
    terminal.send("bg; echo done >go; wait; cat out\n")
    terminal.expect("done\r\n")
    terminal.expect("ready> ")


@on_terminal
def a_background_job_that_reads_is_stopped_and_can_be_continued(world, terminal):
    terminal.send("mcds lock run l -- sh -c 'read a; echo got $a' &\n")
    terminal.expect("ready> ")
    terminal.send("\n")
    wait_for(lambda: (terminal.send("\n"), time.sleep(0.1), "Stopped" in terminal.expect("ready> "))[2])
    terminal.send("fg\n")
    terminal.expect("read a")
    time.sleep(0.2)
    terminal.send("word\n")
    terminal.expect("got word")


@on_terminal
def stopped_for_longer_than_the_lease_means_lost(world, terminal):
    terminal.send("mcds lock run l --ttl 3s -- sh -c 'echo up; exec sleep 100'\n")
    terminal.expect("up\r\n")
    terminal.send("\x1a")
    terminal.expect("Stopped")
    time.sleep(3.2)
    terminal.send("fg\n")
    terminal.expect("the lock was lost and")
    terminal.expect("ready> ")
    terminal.line("echo code $?", "code 79")


@on_terminal
def a_reader_behind_a_pipe_keeps_the_terminal(world, terminal):
    terminal.send("mcds lock run l -- echo up | sh -c 'cat; read a < /dev/tty; echo got $a'\n")
    terminal.expect("up\r\n")
    terminal.send("word\n")
    terminal.expect("got word")
    terminal.expect("ready> ")


@on_terminal
def a_child_before_a_pipe_gets_the_terminal_when_it_asks(world, terminal):
    terminal.send("mcds lock run l -- sh -c 'read a; echo got $a' | cat\n")
    terminal.expect("\n")
    time.sleep(0.3)
    terminal.send("word\n")
    terminal.expect("got word")
    terminal.expect("ready> ")


@on_terminal
def a_pager_works_on_both_sides_of_a_pipe(world, terminal):
    for command in ("mcds lock run l -- less numbers", "cat numbers | mcds lock run l -- less",
                    "mcds lock run l -- cat numbers | less"):
        with open(world.path("numbers"), "w", encoding="utf-8") as file:
            file.writelines(f"number {i}\n" for i in range(1000))
        terminal.send(f"{command}\n")
        terminal.expect("number 20")
        terminal.send("q")
        terminal.line("echo code $?", "code 0")
        terminal.expect("ready> ")


@on_terminal
def in_a_script_control_z_stops_the_whole_job(world, terminal):
    with open(world.path("script"), "w", encoding="utf-8") as file:
        file.write("mcds lock run l -- sh -c 'echo up; read a; echo got $a'\necho after\n")
    terminal.send("sh script\n")
    terminal.expect("up\r\n")
    terminal.send("\x1a")
    terminal.expect("Stopped")
    terminal.send("fg\n")
    terminal.expect("sh script")
    time.sleep(0.2)
    terminal.send("word\n")
    terminal.expect("got word")
    terminal.expect("after")


@on_terminal
def an_interactive_shell_as_the_child(world, terminal):
    terminal.send("PS1='inner> ' mcds sandbox -N 1 -- bash --norc --noprofile -i\n")
    terminal.expect("\n")  # the echo has the prompt, too
    terminal.expect("inner> ")
    terminal.send("sh -c 'echo up; exec sleep 100'\n")
    terminal.expect("up\r\n")
    terminal.send("\x1a")
    terminal.expect("Stopped")
    terminal.expect("inner> ")
    terminal.line("mcds counter incr hits -o value", "1\r\n")
    terminal.expect("inner> ")
    terminal.send("exit 3\nexit 3\n")
    terminal.expect("ready> ")
    terminal.line("echo code $?", "code 3")


@on_terminal
def a_child_that_was_ended_leaves_the_terminal_as_it_was(world, terminal):
    for ending in ("exec sleep 100", "kill -KILL $$"):
        terminal.line(f"stty -g >before; mcds lock run l --max-run 300ms -- sh -c 'stty raw -echo; {ending}'; stty -g >after; echo ended", "ended")
        terminal.expect("ready> ")
        assert world.read("after") == world.read("before") != "", ending


@tested
def a_child_stopped_where_nobody_could_continue_it_is_continued(world):
    """mcds as the leader of a session: the system ignores a stop from the terminal, as it would for the child alone."""
    pid, master = pty.fork()
    if pid == 0:
        os.chdir(world.directory)
        os.execve(MCDS, [MCDS, "lock", "run", "l", "--", "sh", "-c", "echo up; read a; echo got $a"], world.environment)
    try:
        seen = b""
        while b"up" not in seen:
            seen += os.read(master, 1000)
        os.write(master, b"\x1a")
        time.sleep(0.2)
        os.write(master, b"word\n")
        while b"got word" not in seen:
            assert select.select([master], [], [], PATIENCE_S)[0], seen
            seen += os.read(master, 1000)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        pid = 0
    finally:
        if pid:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        os.close(master)


# Counts itself in for as long as it lives: the kernel drops the lock of a process that is killed.
COUNTED = """
import fcntl, os, random, sys, time
held = 0
for i in range(9):
    file = open(f"seat{i}", "w")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        break
    except BlockingIOError:
        continue
else:
    i = 9
seat = open("seat-of-" + os.environ["MCDS_LOCK_SLOT"], "w")
try:
    fcntl.flock(seat, fcntl.LOCK_EX | fcntl.LOCK_NB)
except BlockingIOError:
    i = 99
print(i, flush=True)
time.sleep(0.1 + random.random() / 10)
"""


@tested
def slots_never_have_more_holders_whoever_is_killed(world):
    with open(world.path("counted.py"), "w", encoding="utf-8") as file:
        file.write(COUNTED)
    seats = []

    def one_after_another(number):
        for turn in range(6):
            process = world.start("lock", "run", "l", "--slots", "3", "--ttl", "4s", "--grace", "50ms", "-w", "5m", "--",
                                  sys.executable, "counted.py")
            if turn == number:
                time.sleep(0.1)
                process.send_signal(signal.SIGKILL if number % 2 == 0 else signal.SIGTERM)
            seats.extend(process.communicate(timeout=300)[0].split())

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        for done in [pool.submit(one_after_another, number) for number in range(8)]:
            done.result()
    assert len(seats) >= 42, seats
    assert {"0", "1"} <= set(seats) <= {"0", "1", "2"}, seats


def sandbox_facts(world, *ending):
    process = world.start("sandbox", "-N", "2", "--", "sh", "-c",
                          "echo $MCDS_SANDBOX_DIR $MCDS_SANDBOX_PIDS $$ > facts.new; mv facts.new facts; " + " ".join(ending))
    directory, pids, child = world.written("facts").split()
    return process, directory, pids.split(",") + [child]


def comm(pid):
    with open(f"/proc/{pid}/comm", encoding="ascii") as file:
        return file.read().strip()


def nothing_left(directory, pids):
    return not os.path.exists(directory) and not any(alive(pid) for pid in pids)


@tested
def a_sandbox_leaves_nothing_behind_when_its_command_ends(world):
    process, directory, pids = sandbox_facts(world, "exit 5")
    assert process.wait(PATIENCE_S) == 5
    assert process.stdout.read() == "" and process.stderr.read() == ""
    assert nothing_left(directory, pids)


@tested
def a_sandbox_leaves_nothing_behind_when_it_is_terminated(world):
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGKILL):
        process, directory, pids = sandbox_facts(world, "exec sleep 100")
        # A shell that gets SIGINT while it starts a command may go on.
        wait_for(lambda: comm(pids[-1]) == "sleep")  # pylint: disable=cell-var-from-loop
        process.send_signal(number)
        process.wait(PATIENCE_S)
        wait_for(lambda: nothing_left(directory, pids))
        os.unlink(world.path("facts"))


@tested
def a_sandbox_says_on_a_terminal_that_one_is_inside_and_how_to_leave(world):
    for words, said in (([], True), (["--", "true"], False)):
        pid, master = pty.fork()
        if pid == 0:
            os.execve(MCDS, [MCDS, "sandbox", "-N", "1", *words], {**world.environment, "SHELL": "/bin/true"})
        seen = b""
        with contextlib.suppress(OSError):  # EIO: nobody has the other end any more
            while data := os.read(master, 1000):
                seen += data
        os.close(master)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        assert (b"1 memcached server(s) of its own; exit to leave it" in seen) == said, seen
        assert seen.count(b"\n") == said, seen


@tested
def a_sandbox_outlives_one_of_its_servers(world):
    process, directory, pids = sandbox_facts(world, "kill -9 ${MCDS_SANDBOX_PIDS##*,}; sleep 0.1; exit 2")
    assert process.wait(PATIENCE_S) == 2
    assert nothing_left(directory, pids)


def run_number(number):
    return passes(cases[number], World)


if __name__ == "__main__":
    wanted = sys.argv[2:]
    chosen = [function for function in cases if not wanted or function.__name__ in wanted]
    # They mostly wait.
    with concurrent.futures.ProcessPoolExecutor(4) as pool:
        results = list(pool.map(run_number, map(cases.index, chosen)))
    print(f"{sum(results)} passed, {len(results) - sum(results)} failed")
    sys.exit(not all(results))
