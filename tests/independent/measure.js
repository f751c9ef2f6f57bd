// An independent look at the leaderboard: CPU time per delivery of five servers over WebSocket, by a client that shares no
// code with Pushlab's load: the npm package `ws`, and the scheduler's account of the server's threads. A publisher sends
// twenty messages a second, evenly spaced, to 500 subscribers, as in the experiment peers-even-rate, whose figures for the
// same servers are measured in turn with it and printed beside. The server has one core, the clients the other.
//
//   node tests/independent/measure.js [REPEATS]     after: cargo build --release, pushlab subjects install bun go-bare socketio
import { execFileSync, spawn } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const { WebSocket } = createRequire(new URL("../foreign/package.json", import.meta.url))("ws");

const PUSHLAB =
  process.env.PUSHLAB ?? fileURLToPath(new URL("../../target/release/pushlab", import.meta.url));
const REPEATS = Number(process.argv[2] ?? 5);
const [SUBSCRIBERS, INTERVAL_MS, WARM_UP_MS, LOAD_MS] = [500, 50, 3_000, 11_000];
const [SERVER_CORE, CLIENT_CORE] = ["0", "1"];

const bare = (how) => ({
  path: `/ws${how}?channel=c&publish=c`,
  answers: {},
  isMessage: () => true,
  frame: (data) => data,
});
const SUBJECTS = {
  pushlab: {
    path: "/ws?channel=c",
    answers: {},
    isMessage: (text) => text.startsWith('["msg"'),
    frame: (data) => `["pub","c",${data}]`,
  },
  bun: bare(""),
  "go-bare": bare(""),
  "go-bare:gws": bare("-gws"),
  socketio: {
    path: "/socket.io/?EIO=4&transport=websocket",
    answers: { "0{": "40", "40{": '42["join","c"]' },
    isMessage: (text) => text.startsWith('42["msg"'),
    frame: (data) => `42["pub","c",${data}]`,
  },
};

const sleep = (ms) => new Promise((done) => setTimeout(done, ms));

/** The threads of a process and of all that it started, with the time each has run, ns. */
function threads(pid) {
  const ran = new Map();
  const visit = (process) => {
    for (const thread of readdirSync(`/proc/${process}/task`)) {
      ran.set(
        thread,
        Number(readFileSync(`/proc/${process}/task/${thread}/schedstat`, "utf8").split(" ")[0]),
      );
      const children = readFileSync(`/proc/${process}/task/${thread}/children`, "utf8");
      for (const child of children.split(" ").filter(Boolean)) visit(child);
    }
  };
  visit(pid);
  return ran;
}

/** What all threads ran since, µs; one that has begun meanwhile counts from its beginning. */
function ranSince(before, pid) {
  let sum = 0;
  for (const [thread, ns] of threads(pid)) sum += ns - (before.get(thread) ?? 0);
  return sum / 1_000;
}

/** Starts a server on its core: its address, its process, and how to end it. */
async function start(name) {
  const command =
    name === "pushlab"
      ? ["serve", "--listen", "127.0.0.1:0", "--no-pages"]
      : ["subjects", "start", name.split(":")[0]];
  const child = spawn("taskset", ["-c", SERVER_CORE, PUSHLAB, ...command], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  let text = "";
  const address = await new Promise((found, failed) => {
    child.on("exit", (code) => failed(new Error(`${name} ended with ${code}: ${text}`)));
    child.stdout.on("data", (data) => {
      text += data;
      const [, there] = text.match(/(127\.0\.0\.1:\d+)/) ?? [];
      if (there) found(there);
    });
  });
  // What starts a foreign server waits beside it, and is none of it.
  const own =
    name === "pushlab"
      ? child.pid
      : readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, "utf8").trim();
  const end = () =>
    new Promise((ended) => {
      child.removeAllListeners("exit").once("exit", ended);
      child.kill("SIGINT");
    });
  return { address, process: Number(own), end };
}

/** Opens a WebSocket, says what makes it a subscriber, and calls back for each message. */
async function subscribe(address, { path, answers, isMessage }, onMessage) {
  const socket = new WebSocket(`ws://${address}${path}`, { perMessageDeflate: false });
  socket.on("message", (data) => {
    const text = data.toString("latin1");
    if (text === "2") socket.send("3");
    else if (isMessage(text)) onMessage();
    for (const [begin, answer] of Object.entries(answers))
      if (text.startsWith(begin)) socket.send(answer);
  });
  await new Promise((opened, failed) => socket.once("open", opened).once("error", failed));
  return socket;
}

async function measure(name) {
  const [subject, server] = [SUBJECTS[name], await start(name)];
  try {
    let deliveries = 0;
    const count = () => deliveries++;
    const sockets = [];
    for (let n = 0; n < SUBSCRIBERS; n++)
      sockets.push(await subscribe(server.address, subject, count));
    const publisher = sockets[0];
    await sleep(500);
    let published = 0;
    const data = () => JSON.stringify({ n: published++, text: "x".repeat(40) });
    const timer = setInterval(() => publisher.send(subject.frame(data())), INTERVAL_MS);
    await sleep(WARM_UP_MS);
    const [before, from, publishedBefore] = [threads(server.process), deliveries, published];
    await sleep(LOAD_MS);
    const [used, got, sent] = [
      ranSince(before, server.process),
      deliveries - from,
      published - publishedBefore,
    ];
    clearInterval(timer);
    for (const socket of sockets) socket.terminate();
    if (Math.abs(got - sent * SUBSCRIBERS) > 2 * SUBSCRIBERS)
      throw new Error(`${name}: ${got} of ${sent} × ${SUBSCRIBERS} came`);
    return used / got;
  } finally {
    await server.end();
  }
}

/** What Pushlab's own load finds for the same servers, once each. */
function byPushlab(found) {
  const folder = mkdtempSync(join(tmpdir(), "independent-"));
  const run = (...options) =>
    execFileSync(PUSHLAB, options, {
      cwd: folder,
      stdio: ["ignore", "pipe", "inherit"],
      maxBuffer: 1 << 30,
    });
  try {
    const subjects = Object.keys(SUBJECTS).flatMap((name) => ["--subject", name]);
    run(
      "run",
      "peers-even-rate",
      ...subjects,
      "--transport",
      "websocket",
      "--repeats",
      "1",
      "--store",
      "store.db",
      "--out",
      ".",
    );
    for (const line of run("export", "peers-even-rate", "--store", "store.db", "--format", "csv")
      .toString()
      .split("\n")) {
      const [, subject, , , , , , , , , metric, , value] = line.split(",");
      if (metric === "cpu_per_delivery") (found[subject] ??= []).push(Number(value));
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
}

const median = (values) => values.toSorted((a, b) => a - b)[values.length >> 1];
const pin = (cores) => execFileSync("taskset", ["-pc", cores, String(process.pid)]);
const [own, pushlab] = [{}, {}];
for (let repeat = 0; repeat < REPEATS; repeat++) {
  pin(CLIENT_CORE);
  for (const name of Object.keys(SUBJECTS)) (own[name] ??= []).push(await measure(name));
  pin(`${SERVER_CORE},${CLIENT_CORE}`);
  byPushlab(pushlab);
}
const spread = (values) => `${Math.min(...values).toFixed(1)}–${Math.max(...values).toFixed(1)}`;
console.log("server        independent, µs            pushlab, µs            ratio");
for (const name of Object.keys(SUBJECTS).sort((a, b) => median(own[a]) - median(own[b]))) {
  const [one, other] = [own[name], pushlab[name] ?? [Number.NaN]];
  const columns = [one, other].map(
    (values) => `${median(values).toFixed(2).padStart(7)} ${spread(values).padStart(12)}`,
  );
  console.log(
    `${name.padEnd(12)} ${columns.join("   ")} ${(median(other) / median(one)).toFixed(2).padStart(8)}`,
  );
}
