#!/usr/bin/env python3
"""Signals that are ignored or blocked when mcds is started: every verb with a child ends when the child does, and the child has
them as its parent's parent had; and no ignored signal ends a command that waits. A status that another process has taken, and a process that cannot be made, are 71.

Usage: signals_test.py BUILD_DIR
"""
import contextlib
import fcntl
import os
import resource
import select
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from checks import FULL, check, finish
from program import MCDS, environment, wait_for
from real_servers import Servers

HANGS_S = 120
AT_ONCE = 6
ALL = sorted(signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP})
# A sandbox takes a third of a second of the processor: the other signals are for full runs.
USUAL_OF_SANDBOX = {(), (signal.SIGCHLD,), (signal.SIGPIPE,), (signal.SIGTERM,), (signal.SIGINT,), tuple(ALL)}
MASKS = ["grep", "-E", "^Sig(Blk|Ign):", "/proc/self/status"]
# The child, and what mcds exits with.
ENDS = {"0": (["true"], 0), "7": (["sh", "-c", "exit 7"], 7), "killed": (["sh", "-c", "kill -KILL $$"], 137),
        "missing": (["/nowhere/command"], 127), "leaves another": (["sh", "-c", "sleep 1000 >/dev/null 2>&1 & echo $! >>left; exit 3"], 3)}
# Takes the status of a child before the program asks for it, as a debugger or a library may.
THIEF = r"""
#include <dlfcn.h>
#include <errno.h>
#include <sys/wait.h>
pid_t waitpid(pid_t pid, int* status, int options) {
  pid_t (*next)(pid_t, int*, int) = dlsym(RTLD_NEXT, "waitpid");
  int taken = 0;
  if ((options & WUNTRACED) == 0) return next(pid, status, options);
  if (next(pid, &taken, options) == 0) return 0;
  errno = ECHILD;
  return -1;
}
"""
# AddressSanitizer handles three signals itself, whatever their parent had; and what looks for leaks makes a process.
AS_WITHOUT_A_SANITIZER = os.environ.get("ASAN_OPTIONS", "") + ":handle_segv=0:handle_sigbus=0:handle_sigfpe=0:detect_leaks=0"


def directory_of(server):
    return os.path.dirname(server.removeprefix("unix:"))


def start(words, server, numbers=(), how="ignored", **more):
    def prepare():
        for number in numbers:
            if how == "ignored":
                signal.signal(number, signal.SIG_IGN)
        if how == "blocked":
            signal.pthread_sigmask(signal.SIG_BLOCK, numbers)

    return subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            preexec_fn=prepare, restore_signals=False, start_new_session=True, cwd=directory_of(server),
                            env=environment(MCDS_SERVERS=server, HOME="/nowhere", **{"ASAN_OPTIONS": AS_WITHOUT_A_SANITIZER, **more}))


def end_of(process):
    with process:
        try:
            output, errors = process.communicate(timeout=HANGS_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return "hangs", "", ""
        return process.returncode, output, errors


def run(words, server, numbers=(), how="ignored", **more):
    return end_of(start(words, server, numbers, how, **more))


def run_all(jobs, server):
    """Runs (name, words, signals, how) several at a time; yields each with its status, output and errors."""
    jobs, begun = list(jobs), []
    for _, words, numbers, how in jobs[:AT_ONCE]:
        begun.append(start(words, server, numbers, how))
    for number, job in enumerate(jobs):
        ended = end_of(begun[number])
        if number + AT_ONCE < len(jobs):
            begun.append(start(jobs[number + AT_ONCE][1], server, *jobs[number + AT_ONCE][2:]))
        yield *job, *ended


def verbs(directory, server, number):
    return {"lock run": [MCDS, "lock", "run", f"l{number}", "--ttl", "30s"],
            "cache run": [MCDS, "cache", "run", f"k{number}"],
            "eventlog fetch": [MCDS, "eventlog", "fetch", "log"],
            "item keep": [MCDS, "item", "keep", "--on", server, "--file", os.path.join(directory, f"kept{number}")],
            "sandbox": [MCDS, "sandbox", "-N", "1"]}


def settings():
    for how in ("ignored", "blocked"):
        for numbers in [(), *((one,) for one in ALL), tuple(ALL)]:
            yield numbers, how


def every_signal(directory, server):
    inherited = {(numbers, how): output for _, _, numbers, how, _, output, _ in
                 run_all(((None, MASKS, *setting) for setting in settings()), server)}
    names = list(verbs(directory, server, 0))
    jobs = [(name, [*verbs(directory, server, number)[name], "--", *MASKS], *setting)
            for number, (setting, name) in enumerate((setting, name) for setting in settings() for name in names)
            if FULL or name != "sandbox" or setting[0] in USUAL_OF_SANDBOX]
    for name, _, numbers, how, status, output, errors in run_all(jobs, server):
        wanted = inherited[numbers, how]
        ended = (0, 2) if name == "item keep" else (0,)
        check(status in ended and output.startswith(wanted), f"{name}, {how} {numbers}: {status}, {output!r} for {wanted!r}, {errors}")


def end_left(directory):
    """Ends what children of `leaves another` left, if mcds has not."""
    path = os.path.join(directory, "left")
    if not os.path.exists(path):
        return
    with open(path, encoding="ascii") as left:
        for line in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(line), signal.SIGKILL)
    os.unlink(path)


def every_end(directory, server):
    jobs, wanted = [], []
    for how in ("ignored", "blocked"):
        for numbers in ((signal.SIGCHLD,), tuple(ALL)):
            for end, (command, code) in ENDS.items():
                for name in verbs(directory, server, 0):
                    jobs.append((f"{name} -- {end}", [*verbs(directory, server, 10000 + len(jobs))[name], "--", *command], numbers, how))
                    wanted.append(2 if name == "item keep" and code == 0 else code)  # the server was not restarted
    for code, (name, _, numbers, how, status, _, errors) in zip(wanted, run_all(jobs, server)):
        check(status == code, f"{name}, {how} {numbers}: {status}, {errors}")
    end_left(directory)


def ignored_while_it_waits(server):
    """What each ends with after its second, whatever signals come."""
    ignored = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)
    for line, wanted in (("servers --every 100ms --deadline 1s", 75), ("eventlog tail log -f --deadline 1s", 75), ("hash watch h --deadline 1s", 75),
                         ("capacity --for 1s", 2), ("item hot --for 1s", 0), ("doctor --for 1s --only down", 0)):
        begun = time.monotonic()
        process = start([MCDS, *line.split()], server, ignored)
        while process.poll() is None and time.monotonic() - begun < HANGS_S:
            for number in ignored:
                process.send_signal(number)
            time.sleep(0.05)
        took = time.monotonic() - begun
        status, output, errors = end_of(process)
        check(status == wanted and took >= 1, f"{line}, ended by an ignored signal: {status} after {took} s, {output}, {errors}")


def stalled_reader_holds_no_signal(server):
    """A signal ends what prints until one comes, also while nobody reads its answers."""
    check(run([MCDS, "eventlog", "put", "long", "x" * 20000], server)[0] == 0, "a long event is put")
    unread, into = os.pipe()
    fcntl.fcntl(into, fcntl.F_SETPIPE_SZ, 4096)  # the event is longer: what is full stays full
    with subprocess.Popen([MCDS, "eventlog", "tail", "long", "-f"], stdin=subprocess.DEVNULL, stdout=into, stderr=subprocess.PIPE, text=True,
                          env=environment(MCDS_SERVERS=server, HOME="/nowhere")) as process:
        wait_for(lambda: not select.select([], [into], [], 0)[1], "a full pipe")
        process.send_signal(signal.SIGTERM)
        status, _, errors = end_of(process)
    check(status == 75 and "interrupted, and standard output is not being read" in errors, f"nobody reads: {status}, {errors}")
    os.close(unread)
    os.close(into)


def caught_by_the_command(directory, server):
    """A signal that ends mcds does so, too, if the command that it is passed on to catches it and succeeds."""
    caught = "trap 'exit 0' TERM HUP INT; : >begun; while :; do sleep 0.01; done"
    check(run([MCDS, "hash", "set", "h", "a", "1"], server)[0] == 0, "a field is set")
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        process = start([MCDS, "hash", "watch", "h", "--", "sh", "-c", caught], server)
        begun = os.path.join(directory, "begun")
        wait_for(lambda path=begun: os.path.exists(path), "the command's begin")
        process.send_signal(number)
        status, output, errors = end_of(process)
        check(status == -number, f"{number} while the command of a watch runs: {status}, {output}, {errors}")
        os.unlink(begun)


def status_taken(directory, server):
    source, library = (os.path.join(directory, name) for name in ("thief.c", "thief.so"))
    with open(source, "w", encoding="ascii") as file:
        file.write("#define _GNU_SOURCE\n" + THIEF)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    for name, words in verbs(directory, server, 20000).items():
        if name == "sandbox":
            words = [*words[:2], "-N", "1"]
        status, _, errors = run([*words, "--", "true"], server, LD_PRELOAD=library,
                                ASAN_OPTIONS=AS_WITHOUT_A_SANITIZER + ":verify_asan_link_order=0")
        check(status == 71, f"{name}, its child's status taken by another: {status}, {errors}")


def no_more_processes(server):
    """As a user that may have none: root is not bound by the limit."""
    if os.geteuid() != 0:
        return

    def prepare():
        resource.setrlimit(resource.RLIMIT_NPROC, (1, 1))
        os.setgid(65534)
        os.setuid(65534)

    for words in (["lock", "run", "full", "--", "true"], ["eventlog", "fetch", "log", "--", "true"], ["cache", "run", "--", "true"]):
        with tempfile.TemporaryDirectory() as directory:
            program = os.path.join(directory, "mcds")
            os.chmod(directory, 0o755)
            with open(MCDS, "rb") as original, open(program, "wb") as copy:
                copy.write(original.read())
            os.chmod(program, 0o755)
            with subprocess.Popen(["sleep", "1000"], user=65534) as other:
                done = subprocess.run([program, "-s", server, *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
                                      env={"HOME": "/nowhere", "ASAN_OPTIONS": AS_WITHOUT_A_SANITIZER}, timeout=HANGS_S, preexec_fn=prepare)
                other.kill()
        check(done.returncode == 71, f"no more processes, {words}: {done}")


def main():
    with Servers() as servers:
        directory, server = servers.directory, servers.list
        os.chmod(directory, 0o755)
        os.chmod(servers.paths[0], 0o777)
        check(run([MCDS, "eventlog", "put", "log", "event"], server)[0] == 0, "an event is put")
        every_signal(directory, server)
        every_end(directory, server)
        ignored_while_it_waits(server)
        stalled_reader_holds_no_signal(server)
        caught_by_the_command(directory, server)
        status_taken(directory, server)
        no_more_processes(server)
    finish()


if __name__ == "__main__":
    main()
