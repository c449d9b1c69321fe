<?php
// php-memcached: the calls in order: OPT_NAME=VALUE (a number, text, or the name of a constant), ADD=list or ADD=one; BUCKETS=0/1/….
// session=1 stores through the session handler instead: keys are session ids, the other options settings, and config=FILE
// is where they are left as a php.ini.
[, $servers, ] = $argv;
$calls = array_map(fn ($call) => explode('=', $call, 2), array_slice($argv, 2));
$servers = array_map(function ($server) {
    [$host, $port, $weight] = explode('|', $server);
    return [$host, (int)$port, (int)$weight];
}, explode(' ', $servers));
$pairs = array_map(fn ($line) => explode("\t", $line), explode("\n", trim(stream_get_contents(STDIN), "\n")));

if ($calls[0] === ['session', '1']) {
    $settings = array_column(array_slice($calls, 1), 1, 0);
    $file = $settings['config'];
    unset($settings['config']);
    $settings['session.save_handler'] = 'memcached';
    $settings['session.save_path'] = implode(',', array_map(fn ($server) => implode(':', $server), $servers));
    $lines = array_map(fn ($name, $value) => "$name = \"$value\"\n", array_keys($settings), $settings);
    file_put_contents($file, $lines);
    $settings += ['session.use_cookies' => '0', 'session.serialize_handler' => 'php_serialize', 'memcached.sess_locking' => '0'];
    array_map('ini_set', array_keys($settings), $settings);
    foreach ($pairs as [$key, $value]) {
        session_id($key);
        session_set_save_handler(new class ($value) extends SessionHandler {
            public function __construct(private string $value) {}
            public function write(string $id, string $data): bool { return parent::write($id, $this->value); }
        });
        session_start();
        $_SESSION['value'] = $value;
        session_write_close() || exit("not stored: $key\n");
    }
    exit(0);
}

$client = new Memcached();
foreach ($calls as [$name, $value]) {
    if ($name === 'ADD') {
        if ($value === 'list') {
            $client->addServers($servers);
        } else {
            array_map(fn ($server) => $client->addServer(...$server), $servers);
        }
        continue;
    }
    if ($name === 'BUCKETS') {
        $client->setBucket(array_map('intval', explode('/', $value)), null, 0);
        continue;
    }
    $constant = "Memcached::$value";
    $value = ctype_digit($value) ? (int)$value : (defined($constant) ? constant($constant) : $value);
    if (!$client->setOption(constant("Memcached::$name"), $value)) {
        fwrite(STDERR, "option refused: $name\n");
        exit(1);
    }
}
foreach ($pairs as [$key, $value]) {
    if (!$client->set($key, $value)) {
        fwrite(STDERR, "not stored: $key: " . $client->getResultMessage() . "\n");
        exit(1);
    }
}
