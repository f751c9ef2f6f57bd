// Records conversations of real clients with a server, for crates/server/tests/it/replay.rs. How to use it, and the
// format: crates/server/tests/recordings/README.md.
//
//   node record.js [PART-OF-A-NAME…]     PUSHLAB names the server's program, OUT another folder to write to

import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Server, until } from "../foreign/harness.js";
import { ATTACKS } from "./attacks.js";
import { BROWSERS } from "./browsers.js";
import { CLIENTS } from "./clients.js";
import { CURLS } from "./curls.js";
import { LOADS } from "./loads.js";
import { NPM } from "./npm.js";
import { Recorder } from "./recorder.js";
import { write } from "./text.js";

const OUT =
  process.env.OUT ??
  fileURLToPath(new URL("../../crates/server/tests/recordings", import.meta.url));
/** The same each time, so that the names of hosts in recordings are. */
const PORT = 18_000;
const DEADLINE_MS = 60_000;

/** What a conversation's `run` gets: where to connect, and what to wait for. */
async function record({ name, by, about, server: options = [], cutMatters, isEarly = false, run }) {
  const cleanUps = [];
  const t = { after: (cleanUp) => cleanUps.push(cleanUp) };
  const deadline = setTimeout(() => {
    console.error(`${name}: not done after ${DEADLINE_MS} ms`);
    process.exit(1);
  }, DEADLINE_MS);
  try {
    const server = await Server.start(t, ["--no-pages", ...options]);
    // It holds the connection for a moment, so that a server of one connection is free again.
    const { cursor } = JSON.parse((await server.request("GET", "/stats", { agent: false })).text);
    await new Promise((resolve) => setTimeout(resolve, 50));
    const recorder = await Recorder.start(PORT, server.port);
    recorder.mayBeEarly = isEarly;
    cleanUps.push(() => recorder.end());
    const stop = (...mayStay) => {
      recorder.mayStay = mayStay;
      return recorder.stop(() => server.signal("SIGTERM"));
    };
    const settled = () => recorder.settled();
    const base = `http://127.0.0.1:${PORT}`;
    await run({ t, base, port: PORT, epoch: cursor.split(".")[0], settled, stop, until });
    await recorder.settled();
    const notes = [`about: ${about}`, `client: ${by}`];
    if (options.length > 0) notes.push(`server: ${options.join(" ")}`);
    if (isEarly) notes.push("early-heartbeat");
    if (cutMatters !== undefined) notes.push(`cut-matters: ${cutMatters}`);
    const hasMarks = options.includes("--mark-receipts");
    const text = write({
      notes,
      events: [...recorder.events],
      epoch: cursor.split(".")[0],
      hasMarks,
    });
    await writeFile(join(OUT, `${name}.txt`), text);
    console.log(`${name}: ${text.length} bytes`);
  } finally {
    clearTimeout(deadline);
    for (const cleanUp of cleanUps.reverse()) await cleanUp();
  }
}

const wanted = process.argv.slice(2);
const all = [...CURLS, ...NPM, ...CLIENTS, ...LOADS, ...BROWSERS, ...ATTACKS];
const names = new Set(all.map(({ name }) => name));
if (names.size < all.length) throw new Error("two conversations have one name");
for (const conversation of all) {
  if (wanted.length === 0 || wanted.some((part) => conversation.name.includes(part)))
    await record(conversation);
}
process.exit(0);
