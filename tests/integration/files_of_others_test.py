#!/usr/bin/env python3
"""Whose files count: a configuration that another user can write sends no login which it does not hold itself; a password
file that others can read is warned of once; what is written does not follow another user's link in a sticky folder.

Files are given to other users, so the whole table needs root; anybody else tries the rows with files of their own.

Usage: files_of_others_test.py BUILD_DIR
"""
import os
import shlex
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from checks import check, finish  # noqa: E402
from stub import Stub  # noqa: E402

MCDS = os.path.join(os.path.abspath(sys.argv[1]), "tools", "mcds")
ROOT, OURS, OTHERS = 0, 20001, 20002
SECRET = b"a-secret-word"


class Recorder(Stub):
    """A server that asks for a login, and keeps what it was sent."""

    def __init__(self, path):
        self.seen = b""
        super().__init__(self.talk, path)

    def talk(self, connection):
        logged_in = False
        while more := connection.recv(4096):
            self.seen += more
            lines = more.split(b"\r\n")
            if SECRET in more:
                logged_in = True
                connection.sendall(b"STORED\r\n")
            elif lines[0].startswith(b"set") and not logged_in:
                continue
            else:
                connection.sendall(b"EN\r\n" if logged_in else b"CLIENT_ERROR unauthenticated\r\n")

    def take(self):
        seen, self.seen = self.seen, b""
        return seen


class World:
    def __init__(self, directory):
        self.directory = directory
        self.recorder = Recorder(os.path.join(directory, "server"))
        self.config = os.path.join(directory, "mcds.conf")
        self.password = os.path.join(directory, "password")

    def run(self, words, user, environment, before=()):
        def become():
            if user != os.geteuid():
                os.setgroups([])
                os.setresgid(user, user, user)
                os.setresuid(user, user, user)
        return subprocess.run([*before, MCDS, *words], capture_output=True, text=True, check=False, timeout=60, preexec_fn=become,
                              env={"PATH": "/usr/bin:/bin", "HOME": "/nowhere", **environment})

    def write(self, path, text, owner, mode):
        with open(path, "w", encoding="ascii") as file:
            file.write(text)
        os.chmod(path, mode)
        os.chown(path, owner, -1)

    def tries(self, user, owner, mode, holds, before=()):
        """Whether a counter is read with the login; the answer."""
        server = f"unix:{self.directory}/server"
        self.write(self.password, SECRET.decode() + "\n", user, 0o600)
        login = f"user = u\npassword_file = {self.password}\n" if holds else ""
        self.write(self.config, f"servers = {server}\n{login}", owner, mode)
        environment = {} if holds else {"MCDS_USER": "u", "MCDS_PASSWORD": SECRET.decode()}
        done = self.run(["--config", self.config, "counter", "get", "c"], user, environment, before)
        return SECRET in self.recorder.take(), done


def configurations(world):
    users = (ROOT, OURS) if os.geteuid() == 0 else (os.geteuid(),)
    owners = (ROOT, OURS, OTHERS) if os.geteuid() == 0 else (os.geteuid(),)
    for user in users:
        for owner in owners:
            for mode in (0o600, 0o644, 0o664, 0o666):
                if mode == 0o600 and user not in (ROOT, owner):
                    continue
                for holds in (True, False):
                    trusted = owner in (ROOT, user) and mode != 0o666
                    sent, done = world.tries(user, owner, mode, holds)
                    what = f"user {user}, a file of {owner}, mode {mode:o}, holds the login: {holds}: {done}"
                    check(sent == (trusted or holds), f"{what}, sent: {sent}")
                    check((done.returncode == 78) == (not sent), what)
                    check(sent or "chmod o-w" in done.stderr or "chown" in done.stderr, f"the way out is told: {what}")


def without_a_login(world):
    """A list alone is not judged."""
    owner = OTHERS if os.geteuid() == 0 else os.geteuid()
    world.write(world.config, f"servers = unix:{world.directory}/server\n", owner, 0o666)
    done = world.run(["--config", world.config, "where", "k"], os.geteuid(), {})
    check(done.returncode == 0, f"a list without a login: {done}")
    done = world.run(["--config", world.config, "where", "k"], os.geteuid(), {"MCDS_SERVERS": "unix:/another", "MCDS_USER": "u",
                                                                              "MCDS_PASSWORD": "p"})
    check(done.returncode in (0, 78), f"another list, with its own login: {done}")


def other_spellings(world):
    """The folder of the login decides, however the file is named; a link in it is not the login."""
    beside = ("env", "-C", world.directory)
    for name in (os.path.basename(world.config), f"../{os.path.basename(world.directory)}/{os.path.basename(world.config)}"):
        world.write(world.password, SECRET.decode() + "\n", os.geteuid(), 0o600)
        world.write(world.config, f"servers = unix:{world.directory}/server\nuser = u\npassword_file = {world.password}\n", os.geteuid(), 0o666)
        done = world.run(["--config", name, "counter", "get", "c"], os.geteuid(), {}, beside)
        check(SECRET in world.recorder.take(), f"a configuration named {name}: {done}")
    elsewhere = tempfile.mkdtemp()
    link = os.path.join(elsewhere, "password")
    os.symlink(world.password, link)
    config = os.path.join(elsewhere, "mcds.conf")
    world.write(config, f"servers = unix:{world.directory}/server\nuser = u\npassword_file = {link}\n", os.geteuid(), 0o666)
    done = world.run(["--config", config, "counter", "get", "c"], os.geteuid(), {})
    check(SECRET not in world.recorder.take() and done.returncode == 78, f"a link to another's login: {done}")
    shutil.rmtree(elsewhere)


def user_namespaces(world):
    """Root's file is shown as nobody's in there. It counts where nobody inside can have written it."""
    inside = ["unshare", "--user", "--map-current-user", "--mount", "sh", "-c"]
    mounted = os.path.join(world.directory, "mounted")
    os.makedirs(mounted, exist_ok=True)
    for read_only in (True, False):
        for mode in (0o644, 0o666):
            world.write(os.path.join(mounted, "mcds.conf"), f"servers = unix:{world.directory}/server\n", ROOT, mode)
            world.write(world.password, SECRET.decode() + "\n", OURS, 0o600)
            mount = f"mount --bind {mounted} {mounted}" + (f" && mount -o remount,bind,ro {mounted}" if read_only else "")
            command = shlex.join([MCDS, "--config", os.path.join(mounted, "mcds.conf"), "counter", "get", "c"])
            run_as = f"setpriv --reuid {OURS} --regid {OURS} --clear-groups {shlex.join(inside)} {shlex.quote(command)}"
            done = subprocess.run(["unshare", "--mount", "sh", "-c", f"{mount} && {run_as}"], capture_output=True, text=True, check=False,
                                  timeout=60, env={"PATH": "/usr/bin:/bin", "HOME": "/nowhere", "MCDS_USER": "u",
                                                   "MCDS_PASSWORD": SECRET.decode()})
            sent = SECRET in world.recorder.take()
            check(sent == (read_only and mode == 0o644), f"in a user namespace, read-only: {read_only}, mode {mode:o}: {done}")
            check(sent or done.returncode == 78, f"in a user namespace: {done}")


def readable_passwords(world):
    server = f"unix:{world.directory}/server"
    for mode, warned in ((0o600, False), (0o644, True)):
        world.write(world.password, SECRET.decode() + "\n", os.geteuid(), mode)
        done = world.run(["-s", server, "--user", "u", "--password-file", world.password, "counter", "get", "c"], os.geteuid(), {})
        check(done.stderr.count("chmod 600") == warned and SECRET in world.recorder.take(), f"a password file of mode {mode:o}: {done}")


def planted_links(world):
    """A link that another user has put into a folder for all leads nowhere; our own links do."""
    shared = os.path.join(world.directory, "shared")
    os.mkdir(shared)
    os.chmod(shared, 0o1777)
    target = os.path.join(world.directory, "precious")
    server = f"unix:{world.directory}/nobody"
    for words in (["--errors", "LINK", "counter", "get", "c"], ["lock", "run", "l", "--report", "LINK", "--", "true"],
                  ["cache", "run", "k", "--report", "LINK", "--", "true"], ["item", "remove", "--prefix", "p:", "--yes", "--audit", "LINK"]):
        for owner in ({OTHERS, os.geteuid()} if os.geteuid() == 0 else {os.geteuid()}):
            world.write(target, "precious", os.geteuid(), 0o600)
            link = os.path.join(shared, "link")
            os.symlink(target, link)
            os.chown(link, owner, owner, follow_symlinks=False)
            done = world.run(["-s", server, *[link if word == "LINK" else word for word in words]], os.geteuid(), {})
            with open(target, encoding="utf-8") as file:
                kept = file.read().startswith("precious")
            if owner == OTHERS:
                check(kept and done.returncode == 73, f"a link of another user, {words}: {done}")
            else:
                check(done.returncode != 73, f"a link of ours, {words}: {done}")
            os.remove(link)


def main():
    directory = tempfile.mkdtemp()
    os.chmod(directory, 0o755)
    world = World(directory)
    try:
        os.chmod(os.path.join(directory, "server"), 0o777)
        configurations(world)
        without_a_login(world)
        other_spellings(world)
        readable_passwords(world)
        planted_links(world)
        if os.geteuid() == 0:
            user_namespaces(world)
        else:
            print("not root: files of other users were not tried")
    finally:
        shutil.rmtree(directory)
    finish()


if __name__ == "__main__":
    main()
