// Slow clients by the thousand, as slowhttptest makes them: requests that drip in, answers that are hardly read. All along
// new clients get their answers, one that was there before gets its own, and memory stays within the limits.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test } from "node:test";
import { makeIdentity, Server, until } from "../foreign/harness.js";
import { assertDelivers, Socket } from "../foreign/socket.js";

const KIB = 1 << 10;
const MIB = 1 << 20;

const CONNECTIONS = 1000;
/** More than the ten seconds that the server gives a request to arrive: it ends slow requests by itself. */
const SECONDS = 14;
/** The limit of all queues, well below what a thousand replies of 256 KiB take, or a thousand scripts would if they counted. */
const QUEUE_BYTES = 64 * MIB;

/**
 * Attacks: what they are called, slowhttptest's options, the path, and how many bytes may wait for all their connections,
 * of which each may have so many that are sealed.
 */
const ATTACKS = [
  ["heads that drip in", ["-H", "-i", "3", "-x", "24"], () => "/stats", () => 0],
  ["bodies that drip in", ["-B", "-i", "3", "-s", "60000"], () => "/publish?channel=a", () => 0],
  [
    "long replies, hardly read",
    slowly(4),
    ({ start }) => `/poll?channel=long&after=${start}`,
    (sealed_bytes) => CONNECTIONS * sealed_bytes + QUEUE_BYTES,
  ],
  ["a page's script, hardly read", slowly(4), () => "/assets/console.js", (sealed_bytes) => CONNECTIONS * sealed_bytes],
];

/** Asks for the same so many times at once, and reads 32 bytes every other second, through a window of a few hundred. */
function slowly(requests) {
  return ["-X", "-n", "2", "-z", "32", "-w", "256", "-y", "1024", "-k", requests];
}

// Side by side, because an attack mostly waits; each has a server of its own.
describe("slow clients by the thousand", { concurrency: true }, () => {
  // What a connection takes, and what TLS may hold of it beside its queue: docs/server.md.
  for (const [kind, start, connection_bytes, sealed_bytes] of [
    ["without TLS", (t, options) => Server.start(t, options), 4 * KIB, 0],
    ["with TLS", (t, options) => Server.startSecure(t, makeIdentity(t), options), 8 * KIB, 64 * KIB],
  ]) {
    describe(kind, { concurrency: 1 }, () => {
      for (const [name, options, path, waiting] of ATTACKS) {
        test(name, async (t) => {
          const server = await start(t, ["--queue-total-bytes", String(QUEUE_BYTES)]);
          const history = await fill(server, "long");
          const beside = await Beside.begin(t, server);
          await assertDelivers(t, server);
          const before = server.rss_bytes;
          const attack = await Attack.begin(t, [...options, "-u", `${server.base}${path(history)}`]);
          let largest = before;
          while (!attack.hasEnded) {
            const answer = await server.request("GET", "/healthz", { agent: false });
            assert.equal(answer.status, 200);
            largest = Math.max(largest, server.rss_bytes);
            await new Promise((resolve) => setTimeout(resolve, 100));
          }
          attack.assertAvailable();
          await beside.assertAnswered();
          await assertDelivers(t, server);
          const most = CONNECTIONS * connection_bytes + waiting(sealed_bytes);
          const growth = `memory grew by ${largest - before} bytes; ${most} are allowed`;
          t.diagnostic(growth);
          assert.ok(largest - before < most, growth);
        });
      }
    });
  }
});

/** Publishes as much as a reply holds, and gives the cursor before it. */
async function fill(server, channel) {
  const start = await server.publish("other", "0");
  for (let n = 0; n < 6; n += 1) await server.publish(channel, JSON.stringify("x".repeat(50_000)));
  return { start };
}

/** A client whose echoes have to come back during an attack. */
class Beside {
  #socket;
  #sent = 0;
  #timer;

  static async begin(t, server) {
    const beside = new Beside();
    beside.#socket = await Socket.open(t, server, "channel=beside");
    beside.#timer = setInterval(() => {
      beside.#socket.send("echo", beside.#sent);
      beside.#sent += 1;
    }, 20);
    t.after(() => clearInterval(beside.#timer));
    return beside;
  }

  async assertAnswered() {
    clearInterval(this.#timer);
    const echoes = () => this.#socket.frames.filter(([name]) => name === "echo").map(([, n]) => n);
    await until(() => echoes().length === this.#sent || this.#socket.closed, "every echo");
    assert.deepEqual(echoes(), Array.from({ length: this.#sent }, (_, n) => n));
  }
}

/** A run of slowhttptest. */
class Attack {
  hasEnded = false;
  #folder;
  #output = "";

  static async begin(t, options) {
    const attack = new Attack();
    attack.#folder = mkdtempSync(join(tmpdir(), "pushlab-slow-"));
    t.after(() => rmSync(attack.#folder, { recursive: true, force: true }));
    const crowd = ["-c", CONNECTIONS, "-r", "500", "-l", SECONDS, "-g", "-o", join(attack.#folder, "report")];
    const child = spawn("slowhttptest", [...crowd, ...options].map(String), { stdio: ["ignore", "pipe", "pipe"] });
    t.after(() => child.kill("SIGKILL"));
    for (const stream of [child.stdout, child.stderr]) {
      stream.on("data", (text) => {
        attack.#output = (attack.#output + text).slice(-4000);
      });
    }
    child.on("exit", () => {
      attack.hasEnded = true;
    });
    await once(child, "spawn");
    return attack;
  }

  /**
   * Its report, second by second, says that new clients were answered, and that the connections were there at once, but
   * for a few that slowhttptest gives up when a busy machine keeps it waiting.
   */
  assertAvailable() {
    const text = readFileSync(join(this.#folder, "report.csv"), "utf8");
    const [head, ...rows] = text.trim().split("\n").map((line) => line.split(","));
    assert.deepEqual(head, ["Seconds", "Closed", "Pending", "Connected", "Service Available"], this.#output);
    const connected = Math.max(...rows.map((row) => Number(row[3])));
    assert.ok(connected >= 0.95 * CONNECTIONS, text);
    assert.ok(rows.length > 10 && rows.every((row) => Number(row[4]) > 0), text);
  }
}
