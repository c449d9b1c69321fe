#!/usr/bin/env python3
"""The completions in a real bash, fish and zsh: what they offer for a command line. Usage: completion_test.py BUILD_DIR"""
import os
import pty
import re
import select
import signal
import subprocess
import sys
import tempfile
import time

PATIENCE_S = 60

SCRIPT = r"""
source /usr/share/bash-completion/bash_completion 2>/dev/null
source "$STUB"
compopt() { :; }  # the builtin works only while readline completes, and says so on stderr
COMP_LINE="$1"
read -ra COMP_WORDS <<<"$1"
[[ $1 == *' ' ]] && COMP_WORDS+=('')
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
COMP_POINT=${#COMP_LINE}
_mcds
printf '%s\n' "${COMPREPLY[@]}"
"""

FISH = 'source "$STUB"; complete -C "$argv[1]"'
# The script alone, with what the completion system would have given it.
ZSH = r"""
_describe() { print -rl -- "${described[@]%%:*}" }
_files() { print -rl -- * }
_normal() { print -rl -- "normal $CURRENT ${words[*]}" }
words=("${(@Q)${(z)1}}")
[[ $1 == *' ' ]] && words+=('')
CURRENT=$#words
source $STUB
"""
# Of the other two shells: the interpreter's words, its completion, and what it offers for a command behind `--`.
OTHERS = [(["fish", "--no-config", "-c", FISH], "mcds.fish", "mkdir"), (["zsh", "-f", "-c", ZSH, "zsh"], "_mcds", "normal 1 mkd")]

# Command line, a word that must be offered, a word that must not be.
CASES = [
    ("mcds ", "counter", "incr"),
    ("mcds co", "counter", "lock"),
    ("mcds counter ", "incr", "counter"),
    ("mcds counter incr --", "--ttl", "--max"),
    ("mcds -o value counter limit --", "--max", "--ttl"),
    ("mcds -o ", "json", "counter"),
    ("mcds where k --as twem", "twemproxy-ketama-md5", "dalli"),
    ("mcds where k --as gomemcache,rai", "gomemcache,rails", "rails"),
    ("mcds lock run x -- mkd", "mkdir", "--ttl"),
    ("mcds --config ", "some.conf", "json"),
    ("mcds -P ", "", "some.conf"),
    ("mcds --config some.conf -P ", "main", "json"),
    ("mcds --config some.conf ring diff --to-pool ", "main", "json"),
    ("mcds ring diff --to-servers-from nut", "nutcracker:", "dns:"),
    ("mcds --servers-from ", "elasticache:", "some.conf"),
    ("mcds --servers-from libm", "libmemcached:", "dns:"),
    ("mcds where k --down ", "192.0.2.1:11211", "192.0.2.2:11211"),
    ("mcds -s a,b=10.0.0.2:1 where k --down a:11211,", "a:11211,b", "192.0.2.1:11211"),
    ("mcds lock acquire x --sl", "--slots", "--ttl"),
    ("mcds eventlog tail x --un", "--until", "--user"),
    ("mcds servers --stats ", "slabs", "--hot"),
    ("mcds doctor --only down,evicts", "down,evicts_young", "evicts_young"),
    ("mcds --", "--version", "--max"),
]

# Typed in the shell on a terminal, with a tab behind it, and what then stands there.
TYPED = [
    ("mcds --vers", "mcds --version"),
    ("mcds where k --as=gomem", "mcds where k --as=gomemcache"),
    ("mcds where k --as=gomemcache,rail", "mcds where k --as=gomemcache,rails"),
    ("mcds doctor --only connections_fu", "mcds doctor --only connections_full"),
    ("mcds doctor --skip=down,connections_fu", "mcds doctor --skip=down,connections_full"),
    ("mcds servers --stats sett", "mcds servers --stats settings"),
    ("mcds item hot --sort evic", "mcds item hot --sort evictions"),
    ("mcds item list --sort=id", "mcds item list --sort=idle"),
    ("mcds -o openm", "mcds -o openmetrics"),
    ("mcds where k --down 192.0.2.1:112", "mcds where k --down 192.0.2.1:11211"),
    ("mcds lock run x --ttl=5s -- mkd", "mcds lock run x --ttl=5s -- mkdir"),
    ("mcds item get pag", "mcds item get pag"),
]
INTERACTIVE = {
    "bash": (["bash", "--norc", "-i"], "source /usr/share/bash-completion/bash_completion; source {}/mcds.bash"),
    "zsh": (["zsh", "-f", "-i"], "fpath=({} $fpath); autoload -U compinit; compinit -u -D"),
    "fish": (["fish", "--no-config", "-i"], "source {}/mcds.fish"),
}

# What a program in place of mcds says, and what a config may call its pools: text, and no code.
HOSTILE = ["!command path[$(touch pwned)]", "!command a[$(touch pwned)]", "!command $(touch pwned)", "!command 1+a[$(touch pwned)]", "`touch pwned`\t", "$(touch pwned)"]
NAMES = ["!command 1", "!files", "$(touch pwned)", "two words", "bell\x07", "right-to-left\u202e"]

# A command line whose own options are offered before the options of all commands.
ORDER = ("mcds counter limit --", "--max", "--timeout")


def evaluations(directory, environment, complete, mcds):
    """What in the answers was evaluated, or could be once it is on the command line."""
    failures = []
    with open(os.path.join(directory, "hostile.conf"), "w", encoding="utf-8") as file:
        file.write("".join(f"[pool {name}]\nservers = a\n" for name in NAMES))
    offered = [line.split("\t")[0] for line in
               subprocess.run([mcds, "__complete", "--config", "hostile.conf", "-P", ""], cwd=directory, env=environment,
                              capture_output=True, text=True, timeout=20, check=True).stdout.splitlines()]
    if offered != ["$(touch pwned)", "two words"]:
        failures.append(f"names of pools that control the shell or the terminal are offered: {offered}")
    words = complete("mcds --config hostile.conf -P ").stdout.splitlines()
    for word in words:
        subprocess.run(["bash", "-c", f": {word}"], cwd=directory, check=False, timeout=20)
    if len(words) != 2:
        failures.append(f"names of pools are offered as {words}")
    stand_in = os.path.join(directory, "bin")
    os.mkdir(stand_in)
    with open(os.path.join(stand_in, "mcds"), "w", encoding="utf-8") as file:
        file.write("#!/bin/sh\ncat <<'END'\n" + "\n".join(HOSTILE) + "\nEND\n")
    os.chmod(os.path.join(stand_in, "mcds"), 0o755)
    path = environment["PATH"]
    environment["PATH"] = stand_in + ":" + path
    # With the function of bash-completion that is given the number, which may not be installed here.
    complete("mcds lock run x -- ", SCRIPT.replace("\n_mcds\n", "\n_command_offset() { :; }\n_mcds\n"))
    environment["PATH"] = path
    if os.path.exists(os.path.join(directory, "pwned")):
        failures.append("completion ran code from a name")
    return failures


def other_shells(directory, environment):
    """The same in fish and zsh, which evaluate nothing either."""
    failures, count = [], 0
    for command, script, behind in OTHERS:
        environment = {**environment, "STUB": os.path.join(os.path.dirname(environment["STUB"]), script)}

        def offered(line, command=command, environment=environment):
            done = subprocess.run([*command, line], cwd=directory, env=environment, capture_output=True, text=True, timeout=60, check=False)
            return [word.split("\t")[0] for word in done.stdout.splitlines()] + [f"stderr: {done.stderr}"] * bool(done.stderr)

        for line, wanted, unwanted in [*CASES[:5], ("mcds --config some.c", "some.conf", "json"), ("mcds lock run x -- mkd", behind, "--ttl")]:
            count += 1
            words = offered(line)
            if wanted not in words or unwanted in words or any(word.startswith("stderr") for word in words):
                failures.append(f"{command[0]}: {line!r}: offered {words[:9]}, wanted {wanted!r} and not {unwanted!r}")
        offered("mcds --config hostile.conf -P ")
        path = environment["PATH"]
        environment["PATH"] = os.path.join(directory, "bin") + ":" + path
        offered("mcds lock run x -- ")
        environment["PATH"] = path
        count += 1
        if os.path.exists(os.path.join(directory, "pwned")):
            failures.append(f"{command[0]}: completion ran code from a name")
    return failures, count


def typed_in(shell, directory, environment):
    """What each line of TYPED has become where the tab was pressed: the shell itself prints it."""
    command, setup = INTERACTIVE[shell]
    screen = b""
    process, master = pty.fork()
    if process == 0:
        os.chdir(directory)
        os.execvpe(command[0], command, {**environment, "TERM": "xterm", "PS1": "$ "})
    keys = setup.format(os.path.dirname(environment["STUB"])) + "\n"
    keys += "".join(f"{line}\t\x01echo 'is: \x05'\n" for line, _ in TYPED) + "echo the' end'\n"
    waiting = keys.encode()
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end and b"the end" not in screen:
        readable, writable, _ = select.select([master], [master] if waiting else [], [], 0.1)
        if writable:  # no more than a terminal's queue takes
            waiting = waiting[os.write(master, waiting[:64]):]
        if readable:
            try:
                screen += os.read(master, 1 << 16)
            except OSError:
                break
    os.kill(process, signal.SIGKILL)
    os.waitpid(process, 0)
    os.close(master)
    shown = re.sub(r"\x1b\[[0-9;?>=]*[A-Za-z]|\x1b[=>]|\x1b\][^\x07]*\x07", "", screen.decode(errors="replace"))
    return [line.rstrip() for line in re.findall(r"(?m)(?:^|\r)is: ([^\r\n]*)", shown)], shown


def on_terminals(directory, environment):
    failures = []
    for shell in INTERACTIVE:
        became, shown = typed_in(shell, directory, environment)
        if became != [wanted for _, wanted in TYPED]:
            failures.append(f"{shell} on a terminal: {became}\n{shown[-3000:]}")
    return failures, len(INTERACTIVE)


def main():
    build = os.path.abspath(sys.argv[1])
    stub = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../completions/mcds.bash"))
    failures = []
    with tempfile.TemporaryDirectory() as directory:
        with open(os.path.join(directory, "some.conf"), "w", encoding="utf-8") as file:
            file.write("[pool main]\nservers = 10.0.0.1\n")
        # The servers named here would hang every answer if completion asked them.
        environment = {"PATH": f"{build}/tools:/usr/bin:/bin", "HOME": directory, "STUB": stub, "MCDS_SERVERS": "192.0.2.1:11211"}

        def complete(line, script=SCRIPT):
            return subprocess.run(["bash", "--norc", "-c", script, "bash", line], cwd=directory, env=environment,
                                  capture_output=True, text=True, timeout=20, check=False)

        for line, wanted, unwanted in CASES:
            done = complete(line)
            offered = done.stdout.splitlines()
            if wanted not in offered or unwanted in offered or done.stderr:
                failures.append(f"{line!r}: offered {offered}, wanted {wanted!r} and not {unwanted!r} {done.stderr}")
        failures += evaluations(directory, environment, complete, f"{build}/tools/mcds")
        more, others = other_shells(directory, environment)
        failures += more
        more, terminals = on_terminals(directory, environment)
        failures += more
        # The shell sorts what it shows; mcds itself says what comes first.
        line, own, of_all = ORDER
        offered = [word.split("\t")[0] for word in
                   subprocess.run([f"{build}/tools/mcds", "__complete", *line.split()[1:]], cwd=directory, env=environment,
                                  capture_output=True, text=True, timeout=20, check=True).stdout.splitlines()]
        if offered.index(own) > offered.index(of_all):
            failures.append(f"{line!r}: {of_all} is offered before {own}")
    for failure in failures:
        print(failure)
    print(f"{len(CASES) + others + terminals + 1 - len(failures)} passed, {len(failures)} failed")
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
