"""The table of real clients: which configuration of which client is which profile, and who writes for it."""
from dataclasses import dataclass, field

PREFIX = "app1:"


@dataclass(frozen=True)
class Configuration:
    profile: str  # perhaps with parameters
    options: tuple = ()
    prefix: str = ""  # what the client puts before every key; mcds is given it as --namespace
    keys: str = ""  # "session ids"; "any bytes" although the client takes only ASCII otherwise
    kept_in: str = ""  # the kind of --servers-from that reads the configuration the writer leaves


@dataclass(frozen=True)
class Client:
    name: str
    package: str  # Debian's, or npm's with its version
    writer: tuple  # its command; `writers/` is its working directory
    configurations: tuple
    ci: bool = False
    weights: bool = True
    sockets: bool = True
    names: bool = False  # takes NAME for what it hashes
    resolves: bool = True  # may be given a host name
    ascii_only: bool = False
    longest: int = 250
    build: tuple = field(default=())  # commands that make its program; {out} is a directory for it
    reads: bool = False  # it cannot write: it prints what it reads
    rewritten: tuple = ()  # keys that it sends under another name
    password: str = ""  # what mcds is given as the client's own


def configurations(*rows):
    return tuple(Configuration(row[0], tuple(row[1].split()), *row[2:]) for row in rows)


def hashes(prefix, setting, *names):
    return tuple((prefix + name.lower(), setting.format(name)) for name in names)


PYMEMCACHE = configurations(
    ("pymemcache-rendezvous", ""),
    ("pymemcache-rendezvous-bytes", "keys=bytes"),
    ("pymemcache-rendezvous-prefix", f"prefix={PREFIX}", PREFIX))

PYLIBMC = configurations(
    ("pylibmc-default", ""),
    ("pylibmc-ketama", "ketama=1"),
    ("pylibmc-ketama-weighted", "ketama_weighted=1"),
    ("pylibmc-ketama-weighted-plus-ketama", "ketama=1 ketama_weighted=1"),
    ("pylibmc-ketama-crc", "ketama=1 hash=crc"),
    ("pylibmc-ketama-murmur", "ketama=1 hash=murmur"),
    ("pylibmc-consistent", "distribution=consistent"),
    ("pylibmc-consistent-md5", "hash=md5 distribution=consistent"),
    ("pylibmc-consistent-ketama-md5", "hash=md5 distribution=consistent_ketama"),
    *hashes("pylibmc-modula-", "hash={}", "crc", "fnv1_32", "fnv1_64", "fnv1a_32", "fnv1a_64", "jenkins", "md5", "murmur"))

PYTHON_MEMCACHED = configurations(
    ("python-memcached", ""),
    ("python-memcached-oldhash", "oldhash=1"),
    ("python-memcached-prefix", f"prefix={PREFIX}", PREFIX))

CACHE_MEMCACHED = configurations(
    ("perl-cache-memcached", "class=Cache::Memcached"),
    ("perl-cache-memcached-namespace", f"class=Cache::Memcached namespace={PREFIX}", PREFIX))

FAST = "class=Cache::Memcached::Fast"
CACHE_MEMCACHED_FAST = configurations(
    ("perl-cache-memcached-fast", FAST),
    ("perl-cache-memcached-fast-namespace", f"{FAST} namespace={PREFIX}", PREFIX),
    ("perl-cache-memcached-fast-hash-namespace", f"{FAST} namespace={PREFIX} hash_namespace=1", PREFIX),
    ("perl-cache-memcached-fast-ketama", f"{FAST} ketama_points=150"),
    ("perl-cache-memcached-fast-ketama-namespace", f"{FAST} ketama_points=150 namespace={PREFIX}", PREFIX),
    ("perl-cache-memcached-fast-ketama-hash-namespace",
     f"{FAST} ketama_points=150 namespace={PREFIX} hash_namespace=1", PREFIX))

SAFE = "class=Cache::Memcached::Fast::Safe"
CACHE_MEMCACHED_FAST_SAFE = configurations(
    ("perl-cache-memcached-fast-safe", SAFE),
    ("perl-cache-memcached-fast-safe-namespace", f"{SAFE} namespace={PREFIX}", PREFIX),
    ("perl-cache-memcached-fast-safe-ketama", f"{SAFE} ketama_points=150"),
    ("perl-cache-memcached-fast-safe-ketama-namespace", f"{SAFE} ketama_points=150 namespace={PREFIX}", PREFIX))

BMEMCACHED = configurations(
    ("bmemcached-replicating", "class=ReplicatingClient"),
    ("bmemcached-distributed", "class=DistributedClient"),
    ("bmemcached-distributed:user=app", "class=DistributedClient user=app password=secret"))

DALLI = configurations(
    ("dalli", ""),
    ("dalli-namespace", f"namespace={PREFIX.rstrip(':')}", PREFIX))

CONSISTENT = "OPT_DISTRIBUTION=DISTRIBUTION_CONSISTENT"
COMPATIBLE = "OPT_LIBKETAMA_COMPATIBLE=1"
PHP_MEMCACHED = configurations(
    ("php-memcached-default", "ADD=list"),
    ("php-memcached-binary", "OPT_BINARY_PROTOCOL=1 ADD=list", "", "any bytes"),
    ("php-memcached-binary-ketama-compatible", f"OPT_BINARY_PROTOCOL=1 {COMPATIBLE} ADD=list", "",
     "any bytes"),
    ("php-memcached-consistent", f"{CONSISTENT} ADD=list"),
    ("php-memcached-consistent-addserver", f"{CONSISTENT} ADD=one"),
    ("php-memcached-consistent-md5", f"OPT_HASH=HASH_MD5 {CONSISTENT} ADD=list"),
    ("php-memcached-consistent-late", f"ADD=list {CONSISTENT}"),
    ("php-memcached-consistent-late-md5", f"ADD=list {CONSISTENT} OPT_HASH=HASH_MD5"),
    ("php-memcached-consistent-then-ketama-compatible", f"{CONSISTENT} {COMPATIBLE} ADD=list"),
    ("php-memcached-ketama-compatible", f"{COMPATIBLE} ADD=list"),
    ("php-memcached-ketama-compatible-late", f"ADD=list {COMPATIBLE}"),
    ("php-memcached-ketama-compatible-then-consistent", f"{COMPATIBLE} {CONSISTENT} ADD=list"),
    ("php-memcached-ketama-compatible-crc", f"{COMPATIBLE} OPT_HASH=HASH_CRC ADD=list"),
    ("php-memcached-ketama-compatible-murmur", f"{COMPATIBLE} OPT_HASH=HASH_MURMUR ADD=list"),
    ("php-memcached-ketama-compatible-prefix", f"{COMPATIBLE} OPT_PREFIX_KEY={PREFIX} ADD=list", PREFIX),
    ("php-memcached-ketama-compatible-hash-with-prefix",
     f"{COMPATIBLE} OPT_HASH_WITH_PREFIX_KEY=1 OPT_PREFIX_KEY={PREFIX} ADD=list", PREFIX),
    *hashes("php-memcached-modula-", "OPT_HASH=HASH_{} ADD=list", "CRC", "FNV1_32", "FNV1_64", "FNV1A_32", "FNV1A_64",
            "MD5", "MURMUR"),
    ("php-memcached-prefix", f"OPT_PREFIX_KEY={PREFIX} ADD=list", PREFIX),
    ("php-memcached-vbucket:buckets=0/1/2/2/1/0/1/2",
     "OPT_DISTRIBUTION=DISTRIBUTION_VIRTUAL_BUCKET ADD=list BUCKETS=0/1/2/2/1/0/1/2"),
    ("php-memcached-sorted", "OPT_SORT_HOSTS=1 ADD=list"),
    ("php-memcached-session", "session=1", "memc.sess.key.", "session ids", "php-ini"),
    ("php-memcached-session", "session=1 memcached.sess_prefix=s:", "s:", "session ids", "php-ini"),
    ("php-memcached-prefix", "session=1 memcached.sess_consistent_hash=0", "memc.sess.key.", "session ids", "php-ini"),
    ("php-memcached-ketama-compatible-prefix", "session=1 memcached.sess_consistent_hash_type=ketama_weighted",
     "memc.sess.key.", "session ids", "php-ini"))

PHP_MEMCACHE = configurations(
    ("php-memcache-default", ""),
    *((f"php-memcache-{strategy}-{function}", f"hash_strategy={strategy} hash_function={function}")
      for strategy in ("consistent", "standard") for function in ("crc32", "fnv")))

LIBMEMCACHED_HASHES = ("MD5", "CRC", "FNV1_64", "FNV1A_64", "FNV1_32", "FNV1A_32", "MURMUR", "JENKINS", "MURMUR3")
LIBMEMCACHED = configurations(
    ("libmemcached-default", "ADD=one"),
    ("ketama", "KETAMA_WEIGHTED=1 ADD=one"),
    ("libmemcached-ketama", "KETAMA=1 ADD=one"),
    ("libmemcached-ketama-weighted", "KETAMA_WEIGHTED=1 ADD=one"),
    ("libmemcached-ketama-weighted-late", "ADD=list KETAMA_WEIGHTED=1"),
    *hashes("libmemcached-ketama-weighted-", "KETAMA_WEIGHTED=1 HASH={} ADD=one", "DEFAULT", "CRC", "FNV1A_32", "FNV1A_64",
            "MURMUR"),
    ("libmemcached-ketama-spy", "HASH=MD5 DISTRIBUTION=CONSISTENT_KETAMA_SPY ADD=one"),
    ("libmemcached-ketama-spy-weighted", "KETAMA_WEIGHTED=1 DISTRIBUTION=CONSISTENT_KETAMA_SPY ADD=one"),
    ("libmemcached-consistent", "DISTRIBUTION=CONSISTENT ADD=one"),
    *hashes("libmemcached-consistent-", "HASH={} DISTRIBUTION=CONSISTENT ADD=one", *LIBMEMCACHED_HASHES),
    ("libmemcached-consistent-late", "ADD=list DISTRIBUTION=CONSISTENT"),
    ("libmemcached-consistent-late-md5key", "ADD=list DISTRIBUTION=CONSISTENT HASH=MD5"),
    ("libmemcached-consistent-sorted", "SORT_HOSTS=1 DISTRIBUTION=CONSISTENT ADD=one"),
    *hashes("libmemcached-modula-", "HASH={} ADD=one", *LIBMEMCACHED_HASHES),
    ("libmemcached-modula-sorted", "SORT_HOSTS=1 ADD=one"),
    ("libmemcached-prefix", f"PREFIX={PREFIX} ADD=one", PREFIX),
    ("libmemcached-hash-with-prefix", f"HASH_WITH_PREFIX_KEY=1 PREFIX={PREFIX} ADD=one", PREFIX),
    ("libmemcached-ketama-weighted-hash-with-prefix",
     f"KETAMA_WEIGHTED=1 HASH_WITH_PREFIX_KEY=1 PREFIX={PREFIX} ADD=one", PREFIX))

TWEMPROXY_HASHES = ("one_at_a_time", "md5", "crc16", "crc32", "crc32a", "fnv1_32", "fnv1_64", "fnv1a_32", "fnv1a_64", "hsieh",
                    "murmur", "jenkins")
IN_YAML = ("", "", "nutcracker")
TWEMPROXY = configurations(
    ("twemproxy-default", "", *IN_YAML),
    *((*row, *IN_YAML) for row in hashes("twemproxy-ketama-", "distribution=ketama hash={}", *TWEMPROXY_HASHES)),
    *((*row, *IN_YAML) for row in hashes("twemproxy-modula-", "distribution=modula hash={}", *TWEMPROXY_HASHES)),
    ("twemproxy-ketama-hashtag", 'distribution=ketama hash=fnv1a_64 hash_tag="{}"', *IN_YAML))

SPYMEMCACHED_JAR = "/usr/share/java/spymemcached.jar"
SPYMEMCACHED_WRITER = ("java", "-cp", f"{{out}}:{SPYMEMCACHED_JAR}", "SpymemcachedWriter")
SPYMEMCACHED_BUILD = (("javac", "-cp", SPYMEMCACHED_JAR, "-d", "{out}", "SpymemcachedWriter.java"),)
SPYMEMCACHED_HASHES = ("CRC", "FNV1-32", "FNV1-64", "FNV1A-32", "FNV1A-64")
SPYMEMCACHED = configurations(
    ("spymemcached-default", ""),
    ("spymemcached-ketama", "ketama=plain"),
    ("spymemcached-ketama-libmemcached-unweighted", "ketama=LIBMEMCACHED weights=none"),
    ("spymemcached-consistent-native", "locator=CONSISTENT"),
    *((f"spymemcached-consistent-{name.lower()}", f"locator=CONSISTENT hash={name.replace('-', '_')}_HASH")
      for name in SPYMEMCACHED_HASHES),
    *((f"spymemcached-mod-{name.lower()}", f"locator=ARRAY_MOD hash={name.replace('-', '_')}_HASH")
      for name in SPYMEMCACHED_HASHES + ("KETAMA",)))
SPYMEMCACHED_WEIGHTED = configurations(
    ("spymemcached-ketama-spyformat-weighted", "ketama=SPYMEMCACHED"),
    ("spymemcached-ketama-libmemcached", "ketama=LIBMEMCACHED"))

NODE_MEMCACHED = configurations(
    ("node-memcached", ""),
    ("node-memcached-hash_ring", "compatibility=hash_ring"),
    ("node-memcached-namespace", f"namespace={PREFIX}", PREFIX),
    *((f"node-memcached:algorithm={name}", f"algorithm={name}") for name in ("md5", "sha1", "sha256", "sha384", "sha512")),
    ("node-memcached-sha1", "algorithm=sha1"))

NODE_MEMCACHE = configurations(
    ("node-memcache", ""),
    ("node-memcache-modula", "hash=ModulaHash"),
    ("node-memcache-modula-md5", "hash=ModulaHash/md5"),
    ("node-memcache-modula-sha1", "hash=ModulaHash/sha1"),
    *((f"node-memcache-modula:hash={name}", f"hash=ModulaHash/{name}") for name in ("sha256", "sha384", "sha512")),
    ("node-memcache-broadcast", "hash=BroadcastHash"))

CLIENTS = (
    Client("pymemcache", "python3-pymemcache", ("python3", "with_pymemcache.py"), PYMEMCACHE, ci=True, weights=False),
    Client("pylibmc", "python3-pylibmc", ("python3", "with_pylibmc.py"), PYLIBMC, ci=True),
    Client("python-memcached", "python3-memcache", ("python3", "with_memcache.py"), PYTHON_MEMCACHED, ci=True),
    Client("Cache::Memcached", "libcache-memcached-perl", ("perl", "cache_memcached.pl"), CACHE_MEMCACHED, ci=True),
    Client("Cache::Memcached::Fast", "libcache-memcached-fast-perl", ("perl", "cache_memcached.pl"), CACHE_MEMCACHED_FAST,
           ci=True),
    Client("Cache::Memcached::Fast::Safe", "libcache-memcached-fast-safe-perl", ("perl", "cache_memcached.pl"),
           CACHE_MEMCACHED_FAST_SAFE, ci=True, rewritten=("a key with spaces", "naïve ключ", "k" * 201, "ю" * 40)),
    Client("bmemcached", "python3-binary-memcached", ("python3", "with_bmemcached.py"), BMEMCACHED, ci=True, weights=False,
           password="secret"),
    Client("dalli", "ruby-dalli", ("ruby", "dalli.rb"), DALLI, ci=True),
    Client("php-memcached", "php-memcached", ("php", "memcached.php"), PHP_MEMCACHED, ci=True,
           ascii_only=True),
    Client("twemproxy", "nutcracker", ("python3", "with_nutcracker.py"), TWEMPROXY, ci=True, names=True),
    Client("libmemcached", "libmemcached-dev", ("{out}/libmemcached",), LIBMEMCACHED, ci=True,
           build=(("cc", "-O1", "-Wall", "-o", "{out}/libmemcached", "libmemcached.c", "-lmemcached"),)),
    Client("PECL memcache", "php-memcache", ("php", "memcache.php"), PHP_MEMCACHE),
    Client("gomemcache", "golang-github-bradfitz-gomemcache-dev", ("{out}/gomemcache",), configurations(("gomemcache", "")),
           weights=False, ascii_only=True, build=(("go", "build", "-o", "{out}/gomemcache", "gomemcache.go"),)),
    Client("spymemcached", "libspymemcached-java", SPYMEMCACHED_WRITER, SPYMEMCACHED, weights=False, sockets=False,
           build=SPYMEMCACHED_BUILD),
    Client("spymemcached, weighted", "libspymemcached-java", SPYMEMCACHED_WRITER, SPYMEMCACHED_WEIGHTED, sockets=False,
           build=SPYMEMCACHED_BUILD),
    Client("apr_memcache", "libaprutil1-dev", ("{out}/apr_memcache",),
           configurations(("apr-memcache", ""), ("apr-memcache-crc32", "hash=crc32")), weights=False, sockets=False,
           build=(("sh", "-c", "cc -O1 -o {out}/apr_memcache apr_memcache.c $(pkg-config --cflags --libs apr-util-1 apr-1)"),)),
    Client("AnyEvent::Memcached", "libanyevent-memcached-perl", ("perl", "anyevent.pl"),
           configurations(("perl-anyevent-memcached", "")), sockets=False),
    Client("nginx", "nginx-core", ("python3", "with_nginx.py"),
           configurations(("nginx-hash", ""), ("nginx-hash-consistent", "consistent=1")), reads=True),
    Client("npm memcached", "memcached@2.2.2", ("node", "memcached.js"), NODE_MEMCACHED, sockets=False,
           rewritten=("a$$b", "x$&y", "$$$&$", "$&$&", "k" * 251)),
    Client("npm memcache", "memcache@1.7.0", ("node", "memcache.js"), NODE_MEMCACHE, sockets=False),
    Client("memcache-plus", "memcache-plus@0.3.1", ("node", "memcache-plus.js"),
           configurations(("node-memcache-plus", "")), weights=False, sockets=False, longest=249),
    Client("memjs", "memjs@1.3.2", ("node", "memjs.js"), configurations(("memjs", "")), weights=False, sockets=False),
)
