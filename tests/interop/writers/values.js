// Stores values by npm memcached or memjs, reads them back and prints each as the client has read it.
// Usage: values.js memcached|memjs HOST:PORT plain
const [, , name, address, mode] = process.argv;

function plain(value) {
  if (Buffer.isBuffer(value)) {
    const text = value.toString("utf8");
    return Buffer.from(text).equals(value) ? text : { "@b64": value.toString("base64") };
  }
  if (typeof value === "number" && !Number.isFinite(value)) return { "@number": String(value) };
  if (Array.isArray(value)) return value.map(plain);
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.entries(value).map(([member, one]) => [member.startsWith("@") ? member : member, plain(one)]));
}

const texts = ["text", "naïve ключ 😀", "line\r\nline\\", "\r", "\\\n", "a\\", "{\"json\":1}", "0", "x".repeat(5000), "tab\t"];
const buffers = [Buffer.from("text"), Buffer.from([255, 0, 254, 13, 10, 92]), Buffer.from("é")];
const others = [0, -5, 1.5, 1e300, Infinity, true, false, [1, [2, [3]], null], { a: { b: [true, "\r\n"] } }, { "ключ": "é" }, [], {}];

async function run() {
  let set, get, end, values;
  if (name === "memcached") {
    const Memcached = require("memcached");
    const client = new Memcached(address);
    const call = (method, ...words) => new Promise((resolve, reject) => client[method](...words, (error, value) => (error ? reject(error) : resolve(value))));
    [set, get, end] = [(key, value) => call("set", key, value, 0), (key) => call("get", key), () => client.end()];
    values = [...texts, ...buffers, ...others];
  } else {
    const memjs = require("memjs");
    const client = memjs.Client.create(address);
    [set, get, end] = [(key, value) => client.set(key, value, {}), async (key) => (await client.get(key)).value, () => client.close()];
    values = [...texts, ...texts.map((text) => text + text), ...buffers];
  }
  for (const [number, value] of values.entries()) {
    const key = `${name}-${mode}-${number}`;
    await set(key, value);
    console.log(JSON.stringify({ key, value: plain(await get(key)) }));
  }
  end();
}

run().catch((error) => {
  console.error(error);
  process.exit(1);
});
