const { readFileSync } = require("fs");
const MemcachePlus = require("memcache-plus");

const hosts = process.argv[2].split(" ").map((server) => server.split("|").slice(0, 2).join(":"));
const client = new MemcachePlus({ hosts, reconnect: false });
const pairs = readFileSync(0, "utf8").split("\n").filter(Boolean).map((line) => line.split("\t"));
Promise.all(pairs.map(([key, value]) => client.set(key, value))).then(
  () => process.exit(0),
  (error) => {
    console.error(error);
    process.exit(1);
  },
);
