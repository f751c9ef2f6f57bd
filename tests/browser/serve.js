// `pushlab serve` or `pushlab console`, which have the same pages, its files in a folder that goes when the test has ended.

import { mkdtempSync } from "node:fs";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before } from "node:test";
import { Server } from "../foreign/harness.js";
import { leave } from "./visitor.js";

/**
 * Starts one on a free port, or on `port`, and ends it after the test `t`. `like` is an earlier one whose files it goes on
 * with; `database` is the auction house's, a file if none is named. With an identity of `makeIdentity` it speaks TLS, and
 * with it HTTP/2, unless `options` say otherwise. Only `console` stores and starts something.
 */
export async function serve(t, { command = "serve", port = 0, like, database, identity, options = [] } = {}) {
  // Pages go before their server does, which they would miss.
  t.after(() => leave(t));
  const folder = like?.folder ?? makeFolder(t);
  const store = join(folder, "results.db");
  const files = ["--store", store, "--auction-database", database ?? `sqlite:${join(folder, "auction.db")}`];
  if (command === "console") files.push("--out", join(folder, "reports"));
  const all = [...files, ...options];
  const server = await (identity === undefined
    ? Server.start(t, all, port, command)
    : Server.startSecure(t, identity, all, command));
  return Object.assign(server, { folder, store });
}

function makeFolder(t) {
  const folder = mkdtempSync(join(tmpdir(), "pushlab-browser-"));
  // The process of a running experiment outlives a killed console by a moment, and writes; this tries again from the start.
  t.after(() => rm(folder, { recursive: true, force: true, maxRetries: 10 }));
  return folder;
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
