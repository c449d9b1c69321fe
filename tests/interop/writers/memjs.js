const { readFileSync } = require("fs");
const memjs = require("memjs");

const servers = process.argv[2].split(" ").map((server) => server.split("|").slice(0, 2).join(":"));
const client = memjs.Client.create(servers.join(","), { timeout: 10, conntimeout: 10 });
const pairs = readFileSync(0, "utf8").split("\n").filter(Boolean).map((line) => line.split("\t"));
Promise.all(pairs.map(([key, value]) => client.set(key, value, {}))).then(
  () => client.close(),
  (error) => {
    console.error(error);
    process.exit(1);
  },
);
