<?php
// PECL memcache: the options are memcache.* settings.
[, $servers, ] = $argv;
foreach (array_slice($argv, 2) as $setting) {
    [$name, $value] = explode('=', $setting, 2);
    ini_set("memcache.$name", $value);
}
$client = new Memcache();
foreach (explode(' ', $servers) as $server) {
    [$host, $port, $weight] = explode('|', $server);
    $client->addServer($port === '0' ? "unix://$host" : $host, (int)$port, false, (int)$weight);
}
foreach (explode("\n", trim(stream_get_contents(STDIN), "\n")) as $line) {
    [$key, $value] = explode("\t", $line);
    if (!$client->set($key, $value)) {
        fwrite(STDERR, "not stored: $key\n");
        exit(1);
    }
}
