#!/usr/bin/env python3
"""sandbox --rehearse: real clients find servers at the addresses of their own lists, as root and as another user; nothing
reaches a server outside, nothing stays, and where namespaces are forbidden the reason is said.

Usage: rehearse_test.py BUILD_DIR
"""
import contextlib
import ctypes
import json
import os
import pty
import random
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from checks import check, finish
from program import PATIENT

HERE = os.path.dirname(os.path.abspath(__file__))
WRITERS = os.path.join(HERE, "../interop/writers")
ADDRESSES = "10.77.0.1:11211,10.77.0.2:11300,10.77.0.3:11211"
AS_OTHER = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
KEYS = [f"key:{number}" for number in range(200)]

folder = tempfile.TemporaryDirectory(prefix="mcds-test-")
os.chmod(folder.name, 0o777)
mcds = os.path.join(folder.name, "mcds")  # where another user finds it
shutil.copy(os.path.join(os.path.abspath(sys.argv[1]), "tools", "mcds"), mcds)
shutil.copytree(WRITERS, os.path.join(folder.name, "writers"))
os.environ.update(TMPDIR=folder.name, HOME=folder.name, SHELL="/bin/sh")
for name in [name for name in os.environ if name.startswith(("MCDS_", "XDG_"))]:
    del os.environ[name]
# Where another user finds it: servers have time to answer.
shutil.copytree(PATIENT, os.path.join(folder.name, ".config"))


def in_folder(name, text=""):
    path = os.path.join(folder.name, name)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    os.chmod(path, 0o666)
    return path


def rehearse(servers, script, *options, before=(), source="-s", **how):
    command = [*before, mcds, source, servers, "sandbox", "--rehearse", *options, "--", "sh", "-c", script]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=300, stdin=subprocess.DEVNULL,
                          cwd=folder.name, **how)


def lines(text):
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


def verdicts(text):
    return [line["verdicts"] for line in lines(text) if "verdicts" in line]


# Command, its list, the profile that is right for it, and one that is not.
CLIENTS = {
    "pymemcache": ("python3 writers/with_pymemcache.py '{servers}'", "pymemcache-rendezvous", "gomemcache"),
    "php-memcached": ("php writers/memcached.php '{servers}' ADD=list", "php-memcached-default", "ketama"),
    "Cache::Memcached": ("perl writers/cache_memcached.pl '{servers}' class=Cache::Memcached", "perl-cache-memcached", "dalli"),
}


def real_clients(before):
    """Each client runs untouched on lists of addresses and of names; the right profile explains its keys, and a wrong one does not."""
    keys = in_folder("keys", "".join(f"{key}\tvalue\n" for key in KEYS))
    for name, (command, right, wrong) in CLIENTS.items():
        for servers in (ADDRESSES, "cache-1.prod.example:11211,cache-2.prod.example:11211,10.77.0.9:11211"):
            listed = " ".join("|".join([*server.split(":"), "1", ""]) for server in servers.split(","))
            done = rehearse(servers, f"{command.format(servers=listed)} <{keys} || exit 9; "
                                     f"mcds where --probe --live --as {right}; mcds where --probe --live --as {wrong}; "
                                     "mcds where --guess", before=before)
            found = verdicts(done.stdout)
            check(len(found) == 2 and found[0] == {"ok": len(KEYS)}, f"{name} on {servers}: {done.stdout[-300:]} {done.stderr[-300:]}")
            check(len(found) == 2 and found[1].get("ok") != len(KEYS), f"{name}: {wrong} explains its keys: {found}")
            guess = next((line for line in done.stdout.splitlines() if '"agreement"' in line), "")
            check(f'"{right}"' in guess, f"{name} is guessed to be {guess[:300]}")


def all_kinds_of_servers(before):
    kinds = "10.77.0.1,[fd00:77::2]:11211,a=10.77.0.3:80,one.example,One.Example:11212,198.18.0.1,localhost:11999,unix:/run/app/m.sock"
    done = rehearse(kinds, "mcds servers; getent hosts two.example || echo unknown; cat /run/app/none 2>&1; exit 7", before=before)
    found = lines(done.stdout)
    check(len(found) == 8 and all(line["up"] for line in found), f"not all servers are up: {done}")
    check(done.returncode == 7, f"the status of the command is not passed on: {done.returncode}")
    check([line["server"] for line in found][1:3] == ["[fd00:77::2]:11211", "10.77.0.3:80"], f"other addresses: {found}")
    check("unknown" in done.stdout, "a name outside the list leads somewhere")
    done = rehearse("tls://10.77.0.1,tls://secure.example:11212", "mcds servers", before=before)
    found = lines(done.stdout)
    check(len(found) == 2 and all(line["up"] for line in found), f"TLS: {done.stdout} {done.stderr}")
    done = subprocess.run([*before, "env", f"MCDS_SERVERS={ADDRESSES}", "MCDS_USER=app", "MCDS_PASSWORD=top", mcds, "sandbox",
                           "--rehearse", "--", "sh", "-c", "mcds item set a b; MCDS_PASSWORD=other mcds item get a"],
                          capture_output=True, text=True, check=False, timeout=60, stdin=subprocess.DEVNULL, cwd=folder.name)
    check('"stored":true' in done.stdout and "denied" in done.stderr, f"the list's own login: {done.stdout} {done.stderr}")


def sources(before):
    yml = in_folder("nutcracker.yml", "alpha:\n  listen: 127.0.0.1:22121\n  hash: fnv1a_64\n  distribution: ketama\n  servers:\n"
                                      "   - 10.77.0.1:11211:1 a\n   - 10.77.0.2:11211:2 b\n")
    done = rehearse(f"nutcracker:{yml}", "echo $MCDS_PROFILE $MCDS_SERVERS; mcds servers", source="--servers-from", before=before)
    check(done.stdout.startswith("twemproxy-ketama-fnv1a_64 a=10.77.0.1:11211,b=10.77.0.2:11211/?2\n"), done.stdout + done.stderr)
    check([line["up"] for line in lines(done.stdout)] == [True, True], f"nutcracker: {done.stdout}")
    ini = in_folder("php.ini", 'session.save_handler = memcached\nsession.save_path = "10.77.0.1:11211,10.77.0.2:11211"\n')
    session = 'session_id("abc123"); session_start(); $_SESSION["a"] = 1; session_write_close();'
    done = rehearse(f"php-ini:{ini}", f"php -c {ini} -r '{session}'; mcds where --probe --live --prefix memc.sess.key.abc",
                    source="--servers-from", before=before)
    check(verdicts(done.stdout) == [{"ok": 1}], f"a session of PHP: {done.stdout} {done.stderr}")


def forecast(before):
    """What ring diff says will move is what clients of the new list miss, and after ring move they miss nothing."""
    saved = os.path.join(folder.name, "saved")
    with contextlib.suppress(FileNotFoundError):
        os.unlink(saved)
    keys = in_folder("keys", "".join(f"{key}\tvalue\n" for key in KEYS))
    listed = " ".join("|".join([*server.split(":"), "1", ""]) for server in ADDRESSES.split(","))
    command, profile, _ = CLIENTS["php-memcached"]
    done = rehearse(ADDRESSES, f"{command.format(servers=listed)} <{keys} && mcds item save {saved}", "-m", "8", before=before)
    check(done.returncode == 0, f"item save: {done.stderr}")
    new = ADDRESSES.rpartition(",")[0]
    add = "".join(f'$m->addServer("{host}", {port});' for host, port in (server.split(":") for server in new.split(",")))
    read = ('php -r \'$m = new Memcached; ' + add + ' $n = 0; foreach (file("php://stdin", FILE_IGNORE_NEW_LINES) as $l) '
            'if ($m->get(explode("\\t", $l)[0]) !== "value") $n++; echo "missed $n\\n";\'' + f" <{keys}")
    done = rehearse(ADDRESSES, f"mcds item list -o value | wc -l; mcds ring diff --to {new} --live; {read}; "
                               f"mcds ring move --to {new} || exit 9; {read}", "--fill", saved,
                    before=[*before, "env", f"MCDS_PROFILE={profile}"])
    check(done.returncode == 0, f"ring move: {done.returncode} {done.stderr}")
    moved = [line["moved"] for line in lines(done.stdout) if "moved" in line and "moved_share" in line]
    missed = [int(line.split()[1]) for line in done.stdout.splitlines() if line.startswith("missed ")]
    check(len(moved) == 1 and moved[0] > 10 and missed == [moved[0], 0], f"forecast {moved}, missed {missed}: {done.stdout[-500:]}")
    check(done.stdout.startswith(f"{len(KEYS)}\n"), f"filled with {done.stdout[:20]}")
    done = rehearse(ADDRESSES, "echo ran", "--fill", os.path.join(folder.name, "none"), before=before)
    check("ran" not in done.stdout and done.returncode != 0, f"--fill of no file: {done.returncode} {done.stdout}")


class Listener:
    """Counts the connections to a socket outside."""

    def __init__(self, kind, address):
        self.heard = 0
        self.socket = socket.socket(kind, socket.SOCK_STREAM)
        self.socket.bind(address)
        self.socket.listen()
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        with contextlib.suppress(OSError):
            while True:
                self.socket.accept()[0].close()
                self.heard += 1


def nothing_leaves(before):
    port = Listener(socket.AF_INET, ("127.0.0.1", 0))
    outside = f"127.0.0.1:{port.socket.getsockname()[1]}"
    path = os.path.join(folder.name, f"outside{len(before)}.sock")
    unix = Listener(socket.AF_UNIX, path)
    os.chmod(path, 0o777)
    done = rehearse(f"{outside},unix:{path}", "mcds servers; for i in 1 2 3 4 5 6; do mcds item set k$i v; done", before=before)
    check(sum(line.get("stored", False) for line in lines(done.stdout)) == 6, f"stored inside: {done.stdout} {done.stderr}")
    for listener, where in ((port, "the same address"), (unix, "the socket of the list")):
        check(listener.heard == 0, f"a listener outside at {where} heard {listener.heard} connections")
    check(os.path.exists(path), "the socket outside is gone")
    # A second rehearsal within the first one stands for production: the same addresses, in another namespace.
    done = rehearse(ADDRESSES, f"{mcds} -s {ADDRESSES} sandbox --rehearse -- sh -c "
                               "'for i in 1 2 3 4 5 6; do mcds item set k$i v; done'; mcds item list; mcds servers --stats | "
                               "grep -o '\"cmd_set\":[^,]*' | sort -u", before=before)
    check(done.stdout.count('"stored":true') == 6, f"the inner rehearsal stores: {done.stdout} {done.stderr}")
    check('"key"' not in done.stdout.split('"stored":true')[-1].partition("\n")[2], f"written outside: {done.stdout}")
    check('"cmd_set":"0"' in done.stdout or '"cmd_set":0' in done.stdout, f"commands of the outer servers: {done.stdout[-200:]}")
    if os.geteuid() == 0 and not before:
        hidden = "/run/mcds-test.sock"
        with contextlib.suppress(FileNotFoundError):
            os.unlink(hidden)
        run = Listener(socket.AF_UNIX, hidden)
        done = rehearse(ADDRESSES, f"mcds -s unix:{hidden} servers; ls -A /run", before=before)
        check(run.heard == 0 and '"up":true' not in done.stdout, f"a socket in /run is reached: {done.stdout}")
        run.socket.close()
        os.unlink(hidden)
    done = rehearse(ADDRESSES, "mcds -s 10.77.0.99 servers; mcds -s 93.184.216.34 servers; mcds -s [2001:db8::1]:11211 servers", before=before)
    check([line["up"] for line in lines(done.stdout)] == [False] * 3, f"an address outside the list is reached: {done.stdout}")


def marked(mark):
    """Process ids with this word in their command line, and mounts that name it."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError), open(f"/proc/{pid}/cmdline", "rb") as file:
            if mark.encode() in file.read() and int(pid) != os.getpid():
                found.append(int(pid))
    return found


def gone(mark, parent):
    limit = time.monotonic() + 60
    while time.monotonic() < limit and (marked(mark) or any(name.startswith("mcds-sandbox-") for name in os.listdir(parent))):
        time.sleep(0.02)
    return marked(mark), os.listdir(parent)


def nothing_stays(before):
    with open("/proc/self/mountinfo", encoding="utf-8") as file:
        mounts = file.read()
    where = tempfile.mkdtemp(dir=folder.name)
    os.chmod(where, 0o777)
    mark = "99" + str(random.randrange(10**6))
    daemon = f"setsid sleep {mark} & sleep 0.01; exit 3"
    done = rehearse(ADDRESSES, daemon, before=before, env={**os.environ, "TMPDIR": where})
    check(done.returncode == 3, f"a daemon left behind: {done.returncode} {done.stderr}")
    check(gone(mark, where) == ([], []), f"a daemon stays: {gone(mark, where)}")
    # What is left of the command's own group is ended, and nobody but the guardian is there to reap it.
    done = rehearse(ADDRESSES, "sleep 99 & sleep 0.01; exit 3", before=before, env={**os.environ, "TMPDIR": where})
    check(done.returncode == 3, f"an orphan of the command's group: {done.returncode} {done.stderr}")
    for round_ in range(24):
        process = subprocess.Popen([*before, mcds, "-s", ADDRESSES, "sandbox", "--rehearse", "--", "sh", "-c",
                                    f"setsid sleep {mark} & exec sleep {mark}"], stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, env={**os.environ, "TMPDIR": where})
        if round_ % 4 == 3:
            limit = time.monotonic() + 60
            while time.monotonic() < limit and len(marked(mark)) < 3:
                time.sleep(0.01)
        else:
            time.sleep(random.uniform(0, 0.15))
        process.send_signal(signal.SIGKILL)
        process.wait()
        check(gone(mark, where) == ([], []), f"round {round_}: stays after SIGKILL: {gone(mark, where)}")
    with open("/proc/self/mountinfo", encoding="utf-8") as file:
        check(file.read() == mounts, "mounts of this machine have changed")


def forbid_namespaces():
    """Lets unshare(2) fail with EPERM, as the profiles of containers do."""
    number = {"x86_64": 272, "aarch64": 97}[os.uname().machine]
    program = (struct.pack("HBBI", 0x20, 0, 0, 0) + struct.pack("HBBI", 0x15, 0, 1, number)
               + struct.pack("HBBI", 0x06, 0, 0, 0x00050001) + struct.pack("HBBI", 0x06, 0, 0, 0x7FFF0000))
    buffer = ctypes.create_string_buffer(program)
    filter_ = struct.pack("HxxxxxxQ", 4, ctypes.addressof(buffer))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(38, 1, 0, 0, 0) != 0 or libc.prctl(22, 2, filter_, 0, 0) != 0:
        os._exit(99)


def where_it_cannot_be(before):
    done = rehearse(ADDRESSES, "echo ran", before=before, preexec_fn=forbid_namespaces)
    check(done.returncode == 71 and "ran" not in done.stdout, f"seccomp: {done.returncode} {done.stdout}")
    check("container" in done.stderr and "--rehearse" in done.stderr, f"seccomp: {done.stderr}")
    # In a user namespace of its own the limit can be set without touching the machine.
    limited = ["unshare", "-Ur", "sh", "-c", 'echo 0 >/proc/sys/user/max_user_namespaces && exec setpriv --bounding-set=-all '
               '--inh-caps=-all "$@"', "sh"]
    done = rehearse(ADDRESSES, "echo ran", before=[*before, *limited])
    check(done.returncode == 71 and "ran" not in done.stdout, f"limit 0: {done.returncode} {done.stdout} {done.stderr}")
    check("user.max_user_namespaces is 0" in done.stderr and "sudo" in done.stderr, f"limit 0: {done.stderr}")


def prompt(shell, words, text):
    """Returns the last line that a shell shows on a terminal once it has `text`, or after a minute."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ.update(SHELL=shell, TERM="dumb")
        os.execv(mcds, [mcds, *words])
    shown, limit = b"", time.monotonic() + 60
    while text.encode() not in shown.rpartition(b"\n")[2] and time.monotonic() < limit:
        if select.select([terminal], [], [], 0.1)[0]:
            with contextlib.suppress(OSError):
                shown += os.read(terminal, 4096)
    os.write(terminal, b"exit\n")
    limit = time.monotonic() + 60
    while os.waitpid(pid, os.WNOHANG)[0] == 0 and time.monotonic() < limit:
        with contextlib.suppress(OSError):
            if select.select([terminal], [], [], 0.1)[0]:
                os.read(terminal, 4096)
    os.close(terminal)
    return shown.decode().rpartition("\n")[2]


def prompts():
    for shell in ("/bin/sh", "/bin/bash"):
        for text, words in (("(mcds sandbox) ", ["sandbox", "-N", "1"]), ("(rehearsal) ", ["-s", ADDRESSES, "sandbox", "--rehearse"])):
            shown = prompt(shell, words, text)
            check(text in shown, f"the prompt of {shell} in {words[-1]}: {shown!r}")
    done = subprocess.run([mcds, "sandbox", "-N", "1", "--", "sh", "-c", "command -v mcds"], capture_output=True, text=True, check=False,
                          timeout=60, env={**os.environ, "PATH": "/usr/bin:/bin"})
    check(done.stdout == mcds + "\n", f"the sandbox finds {done.stdout} {done.stderr}")


try:
    prompts()
    users = [[], AS_OTHER] if os.geteuid() == 0 else [[]]
    if subprocess.run([*users[-1], "unshare", "-Ur", "true"], check=False, stderr=subprocess.DEVNULL).returncode != 0:
        done = rehearse(ADDRESSES, "echo ran", before=users.pop())  # a chroot: the kernel makes no user namespace in it
        check(done.returncode == 71 and "chroot" in done.stderr, f"no user namespaces: {done.returncode} {done.stderr}")
    for user in users:
        for part in (real_clients, all_kinds_of_servers, sources, forecast, nothing_leaves, nothing_stays, where_it_cannot_be):
            for name in os.listdir(folder.name):
                with contextlib.suppress(OSError):
                    os.chmod(os.path.join(folder.name, name), 0o777)
            part(user)
finally:
    folder.cleanup()
finish()
