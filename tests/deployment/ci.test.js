// The workflow of docs/ci.md, its steps run as they stand there but for addresses and sizes, with a broadcast server on
// npm `ws`.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { example, put } from "../foreign/documents.js";
import { BINARY } from "../foreign/harness.js";
import { folder } from "./proxies.js";

const DOCUMENT = "ci.md";
const SERVER = `
import { WebSocketServer } from "ws";
const server = new WebSocketServer({ port: Number(process.env.PORT), host: process.env.HOST });
server.on("connection", (socket) => {
  socket.on("message", (data) => {
    for (const client of server.clients) client.send(String(data));
  });
});
`;
/** So that a busy machine voids no run. */
const LENIENT = `
[generator_limits]
cpu_percent_max = 100
turn_p99_ms_max = 10000
lateness_p99_ms_max = 10000
share_percent_max = 100
`;

test("the workflow compares two broadcast servers", async (t) => {
  const path = folder(t);
  mkdirSync(join(path, "bin"));
  symlinkSync(BINARY, join(path, "bin", "pushlab"));
  symlinkSync(fileURLToPath(new URL("../foreign/node_modules", import.meta.url)), join(path, "node_modules"));
  writeFileSync(join(path, "package.json"), '{"type":"module"}');
  for (const build of ["base", "new"]) {
    mkdirSync(join(path, build));
    writeFileSync(join(path, build, "server.js"), SERVER);
  }
  const experiment = put(example(DOCUMENT, "What to measure"), [
    ["clients = [100]\nrepeats = 10\n", "clients = [5]\nrepeats = 2\n"],
    ["idle_ms = 500, warm_up_ms = 1000, load_ms = 6000", "idle_ms = 100, warm_up_ms = 100, load_ms = 300"],
  ]);
  writeFileSync(join(path, "new", "push.toml"), experiment + LENIENT);
  // An address of its own, on which these ports are free.
  const address = `127.${[1, 2, 3].map(() => 1 + Math.floor(Math.random() * 250)).join(".")}`;
  const shell = async (script, ...expected) => {
    const env = {
      ...process.env,
      HOST: address,
      PATH: `${join(path, "bin")}:${process.env.PATH}`,
      GITHUB_STEP_SUMMARY: join(path, "summary.md"),
      PUSHLAB_STORE: join(path, "own.db"),
    };
    const options = { cwd: path, detached: true, env, stdio: ["ignore", "ignore", "pipe"] };
    const child = spawn("bash", ["-e", "-c", script.replaceAll("127.0.0.1", address)], options);
    // What it leaves in the background is in its process group.
    t.after(() => {
      try {
        process.kill(-child.pid);
      } catch {
        // Nobody is left.
      }
    });
    let log = "";
    child.stderr.on("data", (text) => {
      log += text;
    });
    const [code] = await once(child, "exit");
    assert.ok(expected.includes(code), `${script} ended with ${code}: ${log}`);
  };
  const workflow = example(DOCUMENT, "A server of yours");
  const [serve, run, compare, ...others] = Array.from(workflow.matchAll(/- run: \|\n((?: {10}.*\n)+)/g), ([, text]) => text);
  assert.deepEqual(others, []);
  await shell(put(serve, [["npm ci && ", ""]]), 0);
  await shell(run, 0);
  await shell(compare, 0);
  assert.match(readFileSync(join(path, "summary.md"), "utf8"), /new against base/);
  const reports = readdirSync(join(path, "results"), { recursive: true });
  assert.ok(reports.some((file) => file.endsWith("report.xml")), String(reports));
  // How long it takes is the machine's affair, and that the condition can be judged is the document's.
  await shell(example(DOCUMENT, "A limit of your own"), 0, 9, 10);
});
