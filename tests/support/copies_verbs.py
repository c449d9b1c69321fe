"""Every verb that takes --copies, on something called N, in an order in which each succeeds."""

VERBS = [
    ["hash", "set", "N", "f", "1", "g", "2"], ["hash", "set", "N", "f", "2"], ["hash", "get", "N", "f"], ["hash", "fetch", "N"], ["hash", "fields", "N"],
    ["hash", "count", "N"], ["hash", "check", "N"], ["hash", "check", "N", "--accept"], ["hash", "where", "N", "f"],
    ["hash", "remove", "N", "f"], ["hash", "drop", "N"],
    ["table", "add", "N", "m", "k"], ["table", "has", "N", "m"], ["table", "fetch", "N"], ["table", "count", "N"], ["table", "check", "N"],
    ["table", "remove", "N", "m"], ["table", "drop", "N"],
    ["counter", "incr", "N"], ["counter", "incr", "N"], ["counter", "get", "N"], ["counter", "decr", "N"], ["counter", "set", "N", "7"],
    ["counter", "remove", "N"], ["counter", "incr", "Nx", "--exact"], ["counter", "incr", "Nx", "--exact"], ["counter", "get", "Nx"],
    ["counter", "limit", "N", "--max", "5", "--per", "1d"],
    ["visitors", "hit", "N", "--period", "1d"], ["visitors", "hit", "N", "--period", "1d", "--id", "x"], ["visitors", "value", "N", "--period", "1d"],
    ["array", "add", "N", "a", "b"], ["array", "change", "N", "--delete", "a", "--add", "c"], ["array", "delete", "N", "c"], ["array", "fetch", "N"],
    ["array", "count", "N"], ["array", "compact", "N"], ["array", "where", "N"], ["array", "replace", "N", "x"], ["array", "clear", "N"],
    ["cache", "run", "N", "--", "echo", "hi"], ["cache", "run", "N", "--", "echo", "hi"], ["cache", "show", "N"], ["cache", "expire", "N"],
    ["cache", "run", "N", "--", "echo", "hi"], ["cache", "remove", "N"],
]
