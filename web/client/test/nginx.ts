// Debian's nginx in front of a server, with a configuration of its own.

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import net from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { until } from "./server.ts";

/** How often another port is tried when somebody else was faster. */
const MAX_TRIES = 5;

/** Passes upgrades on, as nginx's documentation has it; without it the server gets plain requests in HTTP/1.0. */
export const PASS_UPGRADES = `
  proxy_http_version 1.1;
  proxy_set_header Upgrade $http_upgrade;
  proxy_set_header Connection $connection_upgrade;`;

/** Starts nginx as a proxy before a port, with these lines about how; gives its address. Ended after the test. */
export async function startNginx(target: number, lines: string): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "pushlab-nginx-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  for (let tries = 1; ; tries++) {
    const port = await freePort();
    const file = join(folder, "nginx.conf");
    await writeFile(file, configuration(folder, port, target, lines));
    const child = spawn("nginx", ["-p", folder, "-e", "stderr", "-c", file], {
      stdio: ["ignore", "ignore", "pipe"],
      env: { PATH: `${process.env.PATH}:/usr/sbin` },
    });
    let log = "";
    child.stderr.on("data", (text) => {
      log = (log + text).slice(-4000);
    });
    child.on("error", (error) => {
      log += `${error.message}; it is the package nginx-light on Debian`;
    });
    onTestFinished(() => end(child));
    const hasEnded = () => child.exitCode !== null || child.pid === undefined;
    await until(async () => hasEnded() || (await listens(port)), "nginx listens");
    if (!hasEnded()) return `http://127.0.0.1:${port}`;
    if (tries === MAX_TRIES) throw new Error(`nginx did not start: ${log}`);
  }
}

function configuration(folder: string, port: number, target: number, lines: string): string {
  const paths = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
  const temporary = paths.map((name) => `${name}_temp_path ${folder}/${name};`).join("\n  ");
  return `
daemon off;
worker_processes 1;
pid ${folder}/nginx.pid;
${process.getuid?.() === 0 ? "user root;" : ""}
events { worker_connections 256; }
http {
  access_log off;
  ${temporary}
  map $http_upgrade $connection_upgrade { default upgrade; "" ""; }
  server {
    listen 127.0.0.1:${port};
    location / {
      proxy_pass http://127.0.0.1:${target};
      ${lines}
    }
  }
}
`;
}

async function freePort(): Promise<number> {
  const listener = net.createServer().listen(0, "127.0.0.1");
  await once(listener, "listening");
  const { port } = listener.address() as net.AddressInfo;
  listener.close();
  await once(listener, "close");
  return port;
}

async function listens(port: number): Promise<boolean> {
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

async function end(child: ChildProcess): Promise<void> {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
  // The worker goes with its master.
  child.kill("SIGTERM");
  await once(child, "exit");
}
