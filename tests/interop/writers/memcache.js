// npm memcache: hash=CLASS or CLASS/ARGUMENT.
const { readFileSync } = require("fs");
const { Memcache, ...classes } = require("memcache");

const [, , servers, ...options] = process.argv;
const { hash } = Object.fromEntries(options.map((option) => option.split("=")));
const [name, argument] = hash ? hash.split("/") : [];
const nodes = servers.split(" ").map((server) => {
  const [host, port, weight] = server.split("|");
  return classes.createNode(host, Number(port), { weight: Number(weight) });
});
const client = new Memcache({ nodes, ...(hash && { hash: new classes[name](argument) }) });
const pairs = readFileSync(0, "utf8").split("\n").filter(Boolean).map((line) => line.split("\t"));

(async () => {
  await client.connect();
  for (const [key, value] of pairs) {
    if (!(await client.set(key, value))) throw new Error(`not stored: ${key}`);
  }
  await client.disconnect();
})().catch((error) => {
  console.error(String(error));
  process.exit(1);
});
