// npm memcached: the options are those of its constructor.
const { readFileSync } = require("fs");
const Memcached = require("memcached");

const [, , servers, ...options] = process.argv;
const pool = {};
for (const server of servers.split(" ")) {
  const [host, port, weight] = server.split("|");
  pool[`${host}:${port}`] = Number(weight);
}
const client = new Memcached(pool, Object.fromEntries(options.map((option) => option.split("="))));
const pairs = readFileSync(0, "utf8").split("\n").filter(Boolean).map((line) => line.split("\t"));
let left = pairs.length;
for (const [key, value] of pairs) {
  client.set(key, value, 0, (error, stored) => {
    if (error || !stored) {
      console.error(`not stored: ${key}: ${error}`);
      process.exit(1);
    }
    if (--left === 0) client.end();
  });
}
