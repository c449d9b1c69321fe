"""The servers, helper programs and runs of one benchmark."""
import os
import platform
import shutil
import socket
import subprocess
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TIME_LIMIT = 300


def machine():
    return f"{time.strftime('%Y-%m-%d')}, {os.cpu_count()} cores, Linux {platform.release()}, memcached " + subprocess.run(
        ["memcached", "-V"], capture_output=True, text=True, check=True).stdout.split()[-1]


def wait_for(family, address):
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        with socket.socket(family) as attempt:
            if attempt.connect_ex(address) == 0:
                return
    raise TimeoutError(f"no server at {address}")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def install_peers():
    """Those that are missing; without them the benchmark is poorer, no failure."""
    subprocess.run([os.path.join(HERE, "..", "install_packages"), "build", "bench"], check=False)


class Memcacheds:
    """N memcached processes on unix sockets."""

    def __init__(self, count, megabytes=1024):
        self.directory = tempfile.mkdtemp(prefix="mcds-bench.")
        self.processes = []
        paths = [os.path.join(self.directory, f"m{i}") for i in range(count)]
        for path in paths:
            self.processes.append(subprocess.Popen(["memcached", "-u", "root", "-m", str(megabytes), "-t", "1", "-s", path]))
        for path in paths:
            wait_for(socket.AF_UNIX, path)
        self.paths = paths
        self.servers = ",".join("unix:" + path for path in paths)

    @staticmethod
    def empty(path):
        with socket.socket(socket.AF_UNIX) as server:
            server.connect(path)
            server.sendall(b"flush_all\r\n")
            if server.recv(16) != b"OK\r\n":
                raise RuntimeError("flush_all failed")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.processes:
            process.kill()
            process.wait()
        shutil.rmtree(self.directory)


class TlsMemcached:
    """A memcached with TLS on a port of this machine, and a certificate that is its own CA."""

    def __init__(self, directory):
        self.certificate, key = os.path.join(directory, "certificate.pem"), os.path.join(directory, "key.pem")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj",
                        "/CN=bench", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", self.certificate],
                       check=True, capture_output=True)
        self.port = free_port()
        self.process = subprocess.Popen(["memcached", "-u", "root", "-m", "1024", "-l", "127.0.0.1", "-p", str(self.port), "-Z", "-o",
                                         f"ssl_chain_cert={self.certificate},ssl_key={key}"])
        wait_for(socket.AF_INET, ("127.0.0.1", self.port))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()


class Stage:
    def __init__(self, directory, arguments):
        self.directory, self.quick = directory, arguments.quick
        self.mcds = os.path.abspath(os.path.join(arguments.build, "tools", "mcds"))
        self.path = os.path.join(directory, "memcached")
        self.port = free_port()
        self.redis_path = None
        self.processes = []
        self.environment = {"PATH": os.environ["PATH"], "HOME": directory, "MCDS_SERVERS": "unix:" + self.path}
        self.tools = {}

    def __enter__(self):
        memcached = ["memcached", "-u", "root", "-m", "4096"]
        self.processes.append(subprocess.Popen([*memcached, "-s", self.path]))
        self.processes.append(subprocess.Popen([*memcached, "-l", "127.0.0.1", "-p", str(self.port)]))
        if shutil.which("redis-server"):
            self.redis_path = os.path.join(self.directory, "redis")
            self.processes.append(subprocess.Popen(
                ["redis-server", "--port", "0", "--unixsocket", self.redis_path, "--save", "", "--dir", self.directory],
                stdout=subprocess.DEVNULL))
            wait_for(socket.AF_UNIX, self.redis_path)
        wait_for(socket.AF_UNIX, self.path)
        wait_for(socket.AF_INET, ("127.0.0.1", self.port))
        return self

    def __exit__(self, *_):
        for process in self.processes:
            process.kill()
            process.wait()

    def tool(self, name, *flags):
        if name not in self.tools:
            built = os.path.join(self.directory, name + ".tool")
            flags = ("-static",) if name == "floor" else flags
            subprocess.run(["cc", "-O2", "-o", built, os.path.join(HERE, name + ".c"), *flags], check=True)
            self.tools[name] = built
        return self.tools[name]

    def small_file(self):
        path = os.path.join(self.directory, "value")
        with open(path, "w", encoding="ascii") as file:
            file.write("12345678")
        return path

    def has(self, command):
        return subprocess.run([self.mcds, command, "--help"], env=self.environment, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL, check=False).returncode == 0

    def run(self, words, data=b"", servers=None, codes=(0,)):
        environment = {**self.environment, **({"MCDS_SERVERS": servers} if servers else {})}
        with tempfile.TemporaryFile() as file:
            file.write(data)
            file.seek(0)
            started = time.monotonic()
            done = subprocess.run([self.mcds, *words], env=environment, stdin=file, stdout=subprocess.DEVNULL, check=False)
            if done.returncode not in codes:
                raise subprocess.CalledProcessError(done.returncode, done.args)
            return time.monotonic() - started

    def megabytes(self, words, data, servers=None):
        return self.measured(words, data, servers)[0]

    def measured(self, words, data, servers=None):
        """The most megabytes of memory that it held at a time, and its seconds."""
        environment = {**self.environment, **({"MCDS_SERVERS": servers} if servers else {})}
        with tempfile.TemporaryFile() as file:
            file.write(data)
            file.seek(0)
            out = subprocess.run([self.tool("spawn"), "0", self.mcds, *words], env=environment, stdin=file,
                                 capture_output=True, check=True).stdout
        kibibytes, microseconds = out.split()
        return int(kibibytes) / 1024, int(microseconds) / 1e6

    def together(self, words, data, writers):
        started = time.monotonic()
        threads = [threading.Thread(target=self.run, args=(words, data)) for _ in range(writers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(TIME_LIMIT)
        return time.monotonic() - started

    def pipeline(self, kind, count, keys=None, path=None):
        words = [self.tool("pipeline"), path or self.path, kind, str(count), *([keys] if keys else [])]
        return float(subprocess.run(words, capture_output=True, text=True, timeout=TIME_LIMIT, check=True).stdout)

    def keys_fetched(self, command, name, servers=None):
        """A file of the elements' keys, in the order in which fetch asks for them."""
        path = os.path.join(self.directory, "keys")
        environment = {**self.environment, **({"MCDS_SERVERS": servers} if servers else {})}
        out = subprocess.run([self.mcds, command, "fetch", name, "-o", "value"], env=environment, stdout=subprocess.PIPE,
                             text=True, check=True).stdout
        with open(path, "w", encoding="ascii") as file:
            file.writelines(f"{command}:{name}:v:{line.partition(chr(9))[0]}\n" for line in out.splitlines())
        return path

    def generate_hash_seconds(self, count):
        """libmemcached's own placement in a loop; None without its headers."""
        try:
            rate = subprocess.run([self.tool("generate_hash", "-lmemcached"), str(count)], capture_output=True, text=True,
                                  check=True).stdout
        except subprocess.CalledProcessError:
            return None
        return count / float(rate)
