"""A server that anybody may write to, and what every run of mcds against it is judged by."""
import os
import resource
import select
import socket
import subprocess
import tempfile
import zlib

from checks import check
from program import MCDS, clean_environment
from real_servers import dumped, start_memcached

# The sanitizers' own time and memory say nothing of the program's.
SANITIZED = b"__asan_init" in open(MCDS, "rb").read()
DOCUMENTED = {0, 1, 2, 64, 65, 66, 69, 70, 71, 73, 74, 75, 76, 78, 79, 80, 124, 126, 127}
MOST_SECONDS = 8
MOST_KIB = 200 * 1024
LARGEST_KEPT = 8 << 20
MOST_ADDRESSES = 4 << 30  # a flood ends here, not with the machine


class Done:
    def __init__(self, status, out, err, seconds, kib, out_bytes):
        self.status, self.out, self.err, self.seconds, self.kib = status, out, err, seconds, kib
        self.out_bytes = out_bytes

    def __repr__(self):
        return f"exit {self.status}, stdout {self.out[:300]!r}, stderr {self.err[-600:]!r}"


def execute(arguments, environment, input=b"", timeout=60, cwd=None):
    """Runs mcds, with four times the timeout if it is sanitized. `seconds` is processor time, which other work on the machine
    does not stretch."""
    timeout *= 4 if SANITIZED else 1
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        given.write(input)
        given.seek(0)
        process = subprocess.Popen([MCDS, *arguments], env=environment, stdin=given, stdout=out, stderr=err, cwd=cwd)
        if not SANITIZED:
            resource.prlimit(process.pid, resource.RLIMIT_AS, (MOST_ADDRESSES, MOST_ADDRESSES))
        pid = os.pidfd_open(process.pid)
        ended, _, _ = select.select([pid], [], [], timeout)
        os.close(pid)
        if not ended:
            process.kill()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        texts, sizes = [], []
        for file in (out, err):
            size = file.seek(0, os.SEEK_END)
            file.seek(0)
            # A child's peak begins with what this process has: large outputs are not kept.
            texts.append(file.read(LARGEST_KEPT).decode("utf-8", "surrogateescape"))
            sizes.append(size)
        status = process.returncode if ended else f"none within {timeout} s"
        return Done(status, *texts, usage.ru_utime + usage.ru_stime, usage.ru_maxrss, sizes[0])


def judged(done, what, any_code=False):
    """No signal, no undocumented exit code (unless `any_code`: it may be a command's own), no bug reported, no sanitizer's report, bounded time and memory."""
    check(done.status in DOCUMENTED and done.status != 70 or any_code and 0 <= done.status < 128, f"{what}: {done}")
    check("please report this" not in done.err and "Sanitizer" not in done.err and "runtime error" not in done.err,
          f"{what}: {done}")
    if not SANITIZED:
        check(done.seconds <= MOST_SECONDS, f"{what}: {done.seconds:.1f} s of processor time; {done}")
        check(done.kib <= MOST_KIB, f"{what}: {done.kib >> 10} MiB; {done}")


def sealed(body):
    """A line with its checksum, as records have it."""
    return f"{body} *{zlib.crc32(body.encode('latin-1')):08x}"


def plain_environment(**more):
    return clean_environment(LC_ALL="C.UTF-8", **more)


class Server:
    def __init__(self, directory, *options):
        self.path = os.path.join(directory, "m.sock")
        self.process = start_memcached(self.path, "-m", "64", *options)
        self.environment = plain_environment(MCDS_SERVERS=f"m=unix:{self.path}", HOME=directory)

    def __enter__(self):
        self.connection = socket.socket(socket.AF_UNIX)
        self.connection.connect(self.path)
        self.file = self.connection.makefile("rwb")
        return self

    def __exit__(self, *_):
        self.file.close()
        self.connection.close()
        self.process.kill()
        self.process.wait()

    @classmethod
    def several(cls, count, directory, stack):
        """Each in a folder of its own."""
        folders = [os.path.join(directory, str(number)) for number in range(count)]
        for folder in folders:
            os.mkdir(folder)
        return [stack.enter_context(cls(folder)) for folder in folders]

    def command(self, words, value, flags=0, times=1):
        """`set KEY` or `append KEY`, and the value so many times."""
        data = value.encode("latin-1") if isinstance(value, str) else value
        self.connection.sendall(f"{words} {flags} 0 {len(data) * times}\r\n".encode())
        for _ in range(times):
            self.connection.sendall(data)
        self.connection.sendall(b"\r\n")
        answer = self.file.readline()
        assert answer == b"STORED\r\n", (words, answer)

    def item(self, key):
        """Flags and value."""
        self.connection.sendall(f"get {key}\r\n".encode())
        header = self.file.readline().split()
        if header == [b"END"]:
            return None
        value = self.file.read(int(header[3]) + 2)[:-2]
        self.file.readline()
        return int(header[2]), value

    def get(self, key):
        found = self.item(key)
        return found and found[1]

    def flush(self):
        self.connection.sendall(b"flush_all\r\n")
        self.file.readline()

    def keys(self):
        return [key.decode() for key in dumped(self.file)]

    def run(self, *arguments, input=b"", **options):
        return execute(arguments, self.environment, input, **options)
