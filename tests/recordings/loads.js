// The load generator: `pushlab run` of tiny experiments, whose subject is another build of pushlab: a program that says
// that it listens at the recorder's address, and does nothing else.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { BINARY } from "../foreign/harness.js";

const standIn = (port) => `#!/bin/sh
echo '{"listening":"127.0.0.1:${port}"}'
exec sleep 60
`;

const experiment = (program, transport, scenario) => `
name = "recorded"
title = "A tiny load"
subjects = ["recorded=${program}"]
transports = ["${transport}"]
clients = [2]
repeats = 1
prober = false
[scenario]
${scenario}
payload_bytes = 64
[polling]
interval_ms = 400
wait_s = 25
[phases]
connect_ms = 5000
idle_ms = 100
warm_up_ms = 100
load_ms = 400
drain_ms = 1000
after_ms = 100
`;

/** Runs one; its figures are worthless, since the recorder holds everything up. */
async function run(at, transport, scenario) {
  const folder = await mkdtemp(join(tmpdir(), "pushlab-recorded-"));
  at.t.after(() => rm(folder, { recursive: true, force: true }));
  const [file, program] = [join(folder, "recorded.toml"), join(folder, "stand-in")];
  await writeFile(program, standIn(at.port));
  await chmod(program, 0o755);
  await writeFile(file, experiment(program, transport, scenario));
  const options = [
    "--quiet",
    "--seed",
    "1",
    "--store",
    join(folder, "results.db"),
    "--out",
    join(folder, "results"),
  ];
  const child = spawn(BINARY, ["run", ...options, file], { stdio: ["ignore", "ignore", "pipe"] });
  at.t.after(() => child.kill("SIGKILL"));
  let log = "";
  child.stderr.on("data", (text) => {
    log += text;
  });
  const [code] = await once(child, "close");
  // 8: the generator was late, as it must be.
  if (code !== 0 && code !== 8) throw new Error(`pushlab run ended with ${code}: ${log}`);
}

const TRANSPORTS = [
  "websocket",
  "sse",
  "http-streaming",
  "long-polling",
  "polling",
  "websocket-polling",
];

export const LOADS = [
  ...TRANSPORTS.map((transport) => ({
    name: `load-${transport}`,
    about: "a chat of two clients",
    by: `pushlab run over ${transport}`,
    run: (at) => run(at, transport, 'kind = "chat"\ninterval_ms = 400'),
  })),
  {
    name: "load-websocket-echo",
    about: "echoes of two clients",
    by: "pushlab run over websocket",
    run: (at) => run(at, "websocket", 'kind = "echo"\ninterval_ms = 400'),
  },
];
