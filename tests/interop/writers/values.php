<?php
// Stores values by php-memcached or php-memcache, reads them back and prints each as the client has read it.
// Usage: values.php Memcached|Memcache HOST:PORT compress|plain [SERIALIZER [COMPRESSION]]

enum Suit: string { case Hearts = "H"; }

class Point
{
    private $hidden = 1;
    protected $guarded = [2];
    public function __construct(public $x, public $y) {}
}

function plain($value)
{
    if (is_string($value)) {
        return is_utf8($value) ? $value : ["@b64" => base64_encode($value)];
    }
    if (is_float($value) && !is_finite($value)) {
        return ["@number" => is_nan($value) ? "NaN" : ($value > 0 ? "Infinity" : "-Infinity")];
    }
    if ($value instanceof UnitEnum) {
        return ["@class" => get_class($value), "@enum" => $value->name];
    }
    if (is_object($value) || is_array($value)) {
        $members = [];
        foreach ($value instanceof ArrayObject ? $value->__serialize() : (array) $value as $name => $one) {
            $name = preg_replace('/^\0[^\0]*\0/', '', $name);
            $name = is_utf8($name) ? (str_starts_with($name, '@') ? "@$name" : $name) : "@b64:" . base64_encode($name);
            $members[$name] = plain($one);
        }
        return is_array($value) ? (array_is_list($value) ? array_values($members) : (object) $members)
            : ($value instanceof stdClass && $GLOBALS['json'] ? (object) $members : (object) (["@class" => get_class($value)] + $members));
    }
    return $value;
}

function is_utf8($text)
{
    return preg_match('//u', $text) === 1;
}

[, $class, $address, $compress] = $argv;
$serializer = $argv[4] ?? 'php';
$compression = $argv[5] ?? '';
$json = str_starts_with($serializer, 'json');
[$host, $port] = explode(':', $address);
$client = new $class;
$client->addServer($host, (int) $port);
if ($class === 'Memcache') {
    $client->setCompressThreshold(1 << 30);
} else {
    $client->setOption(Memcached::OPT_SERIALIZER, constant('Memcached::SERIALIZER_' . strtoupper($serializer)));
    $client->setOption(Memcached::OPT_COMPRESSION, $compress === 'compress');
    if ($compress === 'compress') {
        $client->setOption(Memcached::OPT_COMPRESSION_TYPE, constant('Memcached::COMPRESSION_' . strtoupper($compression)));
        ini_set('memcached.compression_threshold', '100');
    }
}

$point = new Point(1, new Point("y", []));
$values = ["text", "naïve ключ 😀", "", "line\r\nline\\", 0, -5, PHP_INT_MAX, PHP_INT_MIN, true, false, 1.5, -1e300, 1e22,
    [1, [2, [3]], "x"], ["a" => ["b" => [true, false, null]]], ["@at" => 1, 7 => "seven", -3 => []], [1 => "not a list"], range(0, 400),
    array_fill_keys(range(1000, 1060), str_repeat("value ", 20)), str_repeat("compressible text, ", 5000), str_repeat(implode(array_map("md5", range(0, 1500))), 2), [70000, -70000, 300, -300],
    json_decode('{"an":{"object":[1,2.5,"\u00e9"]}}')];
if (!$json) {
    $values = [...$values, "\xff\xfe\0", [INF, -INF, NAN], $point, ["same" => $point, "again" => $point], [Suit::Hearts, Suit::Hearts], new ArrayObject([1, 2]),
        ["\xff\x01" => "binary name", "bytes" => "a\xffb"]];
}
foreach ($values as $number => $value) {
    $key = "php-$class-$serializer-$compression-$compress-$number";
    $stored = $class === 'Memcached' ? $client->set($key, $value)
        : $client->set($key, $value, $compress === 'compress' && !is_bool($value) && !is_int($value) && !is_float($value) ? MEMCACHE_COMPRESSED : 0);
    if (!$stored) {
        fwrite(STDERR, "not stored: $key\n");
        exit(1);
    }
    echo json_encode(["key" => $key, "value" => plain($client->get($key))], JSON_THROW_ON_ERROR), "\n";
}
