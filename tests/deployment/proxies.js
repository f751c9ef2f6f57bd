// The examples of docs/deployment.md, run as they stand there but for addresses, certificates and files.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import net from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { makeIdentity, Server, until } from "../foreign/harness.js";

const DOCUMENT = new URL("../../docs/deployment.md", import.meta.url);
/** How often another port is tried when somebody else was faster. */
const MAX_TRIES = 5;
/** Of whom the examples let publish with POST: a network, and who stands for it. */
export const BACK_END = ["10.0.0.0/8", "127.0.0.9"];

/** The example behind a heading. */
function example(heading) {
  const [, section] = readFileSync(DOCUMENT, "utf8").split(`\n## ${heading}\n`);
  assert.ok(section, `docs/deployment.md has a section "${heading}"`);
  return /```\w*\n(.*?)```/s.exec(section)[1];
}

/** Puts values into the places of others, each of which must be there. */
function put(text, values) {
  for (const [from, to] of values) {
    assert.ok(text.includes(from), `docs/deployment.md says ${from}`);
    text = text.replaceAll(from, to);
  }
  return text;
}

/** The server of the example's service, with this access file. */
export function startServer(t, access) {
  const file = join(folder(t), "access.toml");
  writeFileSync(file, access);
  const service = put(example("A service of systemd"), [["/etc/pushlab/access.toml", file]]);
  const [, command] = /^ExecStart=\S+ serve ((?:.*\\\n)*.*)$/m.exec(service);
  return Server.start(t, command.replaceAll("\\\n", " ").trim().split(/\s+/));
}

/** The proxies: each starts in front of a server, and gives the port on which it speaks TLS. */
export const PROXIES = {
  nginx: (t, server) => {
    const [path, { certificate, key }] = [folder(t), makeIdentity(t)];
    return start(t, "nginx", (port) => {
      const configuration = put(example("Behind nginx"), [
        ["listen 443 ", `listen 127.0.0.1:${port} `],
        ["/etc/ssl/push.example.org.pem", certificate],
        ["/etc/ssl/push.example.org.key", key],
        ["127.0.0.1:8000", `127.0.0.1:${server.port}`],
        BACK_END,
      ]);
      const kinds = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
      const around = kinds.map((kind) => `${kind}_temp_path ${path}/${kind};`).join("\n");
      const user = process.getuid() === 0 ? "user root;" : "";
      const file = join(path, "nginx.conf");
      const main = `daemon off; worker_processes 1; pid ${path}/nginx.pid; ${user} events {}`;
      writeFileSync(file, `${main}\nhttp {\naccess_log off;\n${around}\n${configuration}}\n`);
      return ["-p", path, "-e", "stderr", "-c", file];
    });
  },
  haproxy: (t, server) => {
    const [path, { certificate, key }] = [folder(t), makeIdentity(t)];
    const both = join(path, "both.pem");
    writeFileSync(both, readFileSync(certificate, "utf8") + readFileSync(key, "utf8"));
    return start(t, "haproxy", (port) => {
      const file = join(path, "haproxy.cfg");
      const configuration = put(example("Behind HAProxy"), [
        ["bind :443 ", `bind 127.0.0.1:${port} `],
        ["/etc/ssl/push.example.org.pem", both],
        ["127.0.0.1:8000", `127.0.0.1:${server.port}`],
      ]);
      writeFileSync(file, configuration);
      return ["-db", "-f", file];
    });
  },
};

function folder(t) {
  const path = mkdtempSync(join(tmpdir(), "pushlab-deployment-"));
  t.after(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

/** Starts a proxy, configured for a free port, which it gives; ended after the test. */
async function start(t, program, configure) {
  for (let tries = 1; ; tries += 1) {
    const port = await freePort();
    const child = spawn(program, configure(port), {
      stdio: ["ignore", "ignore", "pipe"],
      env: { PATH: `${process.env.PATH}:/usr/sbin` },
    });
    let log = "";
    child.on("error", (error) => {
      log += error.message;
    });
    child.stderr.on("data", (text) => {
      log = (log + text).slice(-4000);
    });
    t.after(() => end(child));
    const hasEnded = () => child.exitCode !== null || child.pid === undefined;
    await until(async () => hasEnded() || (await listens(port)), () => `${program} listens; it logged: ${log}`);
    if (!hasEnded()) return port;
    assert.ok(tries < MAX_TRIES, `${program} did not start: ${log}`);
  }
}

async function freePort() {
  const listener = net.createServer().listen(0, "127.0.0.1");
  await once(listener, "listening");
  const { port } = listener.address();
  listener.close();
  await once(listener, "close");
  return port;
}

async function listens(port) {
  const socket = net.connect(port, "127.0.0.1");
  try {
    await once(socket, "connect");
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}

async function end(child) {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
  // Workers go with their master.
  child.kill("SIGTERM");
  await once(child, "exit");
}
