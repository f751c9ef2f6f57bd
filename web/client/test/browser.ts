// Chromium, with pages that report to the test.

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import http from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { until } from "./server.ts";

const CHROMIUM = process.env.CHROMIUM ?? "/usr/bin/chromium";
const FLAGS =
  "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking " +
  "--disable-component-update --disable-sync --no-proxy-server";

/** What a path has, or what makes it when it is asked for. */
export type File = string | (() => string);

/** Serves `files` by path (a path without an ending is HTML), opens `/`, and gives what the page sends with `report(value)`. */
export async function runPage(files: Map<string, File>): Promise<unknown> {
  const reports: string[] = [];
  const server = http.createServer(async (request, response) => {
    const path = (request.url ?? "").split("?")[0] ?? "";
    if (request.method === "POST") {
      const parts = await request.setEncoding("utf8").toArray();
      reports.push(parts.join(""));
      response.end();
      return;
    }
    const file = files.get(path);
    const type = path.endsWith(".js") ? "text/javascript" : "text/html";
    response.writeHead(file === undefined ? 404 : 200, {
      "content-type": `${type}; charset=utf-8`,
    });
    response.end(typeof file === "function" ? file() : file);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const folder = await mkdtemp(join(tmpdir(), "pushlab-client-"));
  const { port } = server.address() as AddressInfo;
  const args = [...FLAGS.split(" "), `--user-data-dir=${folder}`, `http://127.0.0.1:${port}/`];
  const browser = spawn(CHROMIUM, args, {
    stdio: ["ignore", "ignore", "pipe"],
    // What a killed browser leaves behind is removed with its profile.
    env: { ...process.env, TMPDIR: folder },
  });
  let log = "";
  browser.stderr.on("data", (text) => {
    log = (log + text).slice(-2000);
  });
  browser.on("error", (error) => {
    log += `${CHROMIUM}: ${error.message}`;
  });
  onTestFinished(async () => {
    await end(browser);
    server.closeAllConnections();
    server.close();
    await rm(folder, { recursive: true, force: true, maxRetries: 10 });
  });
  await until(
    () => reports.length > 0,
    () => `the page reports; ${log}`,
    60_000,
  );
  return JSON.parse(reports[0] ?? "");
}

async function end(browser: ChildProcess): Promise<void> {
  if (browser.pid === undefined || browser.exitCode !== null) return;
  browser.kill("SIGTERM");
  await once(browser, "exit");
}
