<?php
// Sessions by the handler of PHP's settings: "write" stores one under each id of standard input, "read" counts those whose
// value is there.
ini_set('session.use_strict_mode', '0');
ini_set('session.use_cookies', '0');
ini_set('session.cache_limiter', '');
$held = 0;
foreach (explode("\n", trim(stream_get_contents(STDIN))) as $id) {
    session_id($id);
    session_start() || exit(1);
    if ($argv[1] === 'write') {
        $_SESSION['value'] = $id;
    }
    $held += ($_SESSION['value'] ?? null) === $id ? 1 : 0;
    session_write_close() || exit(1);
}
echo $held, "\n";
