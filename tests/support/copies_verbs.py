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
]
