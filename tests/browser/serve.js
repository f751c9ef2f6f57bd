// `pushlab serve` or `pushlab console`, which have the same pages, its files in a folder that goes when the test has ended.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before } from "node:test";
import { Server } from "../foreign/harness.js";

/** Starts one on a free port, or on `port`, and ends it after the test `t`. Only `console` stores and starts something. */
export async function serve(t, { command = "serve", port = 0 } = {}) {
  const folder = mkdtempSync(join(tmpdir(), "pushlab-browser-"));
  t.after(() => rmSync(folder, { recursive: true, force: true, maxRetries: 10 }));
  const database = `sqlite:${join(folder, "auction.db")}`;
  const files = ["--store", join(folder, "results.db"), "--auction-database", database];
  return Server.start(t, files, port, command);
}

/** One for all tests of a `describe`: `server` is there when they run. */
export function serveForAll(options) {
  const ends = [];
  const shared = { server: undefined };
  before(async () => {
    shared.server = await serve({ after: (end) => ends.push(end) }, options);
  });
  after(async () => {
    for (const end of ends.reverse()) await end();
  });
  return shared;
}
