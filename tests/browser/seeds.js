// What the pages of a console have to show: results in every state, a campaign that runs, and demos with people in them.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { BINARY, until } from "../foreign/harness.js";
import { Peer } from "./peer.js";

const runs = (name) => fileURLToPath(new URL(`../../runs/${name}.csv`, import.meta.url));
/** Two builds of which one is slower, five runs each: what the machine that tests is doing changes nothing in them. */
const BUILDS = { baseline: [4.1, 4.3, 4.0, 4.2, 4.4], candidate: [5.9, 6.2, 6.0, 5.8, 6.1] };

function csvOf(latencies) {
  const row = (transport, repeat, metric, unit, value) =>
    `change,pushlab,${transport},close,,100,,,${repeat},${metric},${unit},${value},,yes`;
  const rows = latencies.flatMap((latency, at) => [
    row("websocket", at + 1, "latency_median", "ms", latency),
    row("websocket", at + 1, "cpu", "%", 31 + at / 4),
    row("sse", at + 1, "latency_median", "ms", 7.2 - at / 10),
    row("sse", at + 1, "cpu", "%", latency * 9),
  ]);
  const head =
    "experiment,subject,transport,policy,variant,clients,deliveries_per_s,payload_bytes,repeat,metric,unit,value,bound,counts";
  return `${[head, ...rows].join("\n")}\n`;
}

const IMPORTED = ["payload-by-transport-quick", "cometd-idle-full", "peers-quick"].map(runs);

/** An experiment that is over soon. */
export const SHORT = experiment("short", "Two transports, for a moment", {
  clients: [4],
  repeats: 2,
  load_ms: 400,
});
/** One that is still running when the pages have been looked at. */
export const LONG = experiment("long", "A feed for as long as somebody looks at it", {
  clients: [10],
  repeats: 3,
  load_ms: 600_000,
});

function experiment(name, title, { clients, repeats, load_ms }) {
  return `name = "${name}"
title = "${title}"
transports = ["websocket", "sse"]
clients = [${clients}]
repeats = ${repeats}
scenario = { kind = "feed", interval_us = 20000, payload_bytes = 173 }
phases = { connect_ms = 10000, idle_ms = 50, warm_up_ms = 50, load_ms = ${load_ms}, drain_ms = 3000, after_ms = 50 }
`;
}

/** A measurement as a visitor's browser stores it, one transport of which got through late and one not at all. */
export const MEASUREMENT = {
  user_agent: "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0",
  page_ms: 1_767_225_600_000,
  transports: [
    {
      ...{ transport: "websocket", ok: false, problem: "the connection could not be opened", latencies_ms: [] },
      ...{ requests: 1, is_buffered: false },
    },
    {
      ...{ transport: "sse", ok: true, connect_ms: 21.5, latencies_ms: [4.1, 3.9, 4.4, 5.2], jitter_ms: 0.5 },
      ...{ requests: 9, bytes_received: 2048, is_buffered: false },
    },
  ],
};

/** Asks a console for something that changes it, and gives the answer. */
export async function ask(server, method, path, body) {
  const headers = { "content-type": "application/json" };
  const answer = await server.request(method, path, { body: body && JSON.stringify(body), headers });
  assert.ok(answer.status < 300, `${method} ${path}: ${answer.status} ${answer.text}`);
  return answer.text === "" ? null : JSON.parse(answer.text);
}

/** Starts an experiment; it is over when `/api/live` says so. */
export const start = (server, toml) => ask(server, "POST", "/api/campaigns", { toml, seed: 1 });

/** How long runs may take: a busy machine makes some of them void, and those are repeated. */
const SETTLES_WITHIN_MS = 240_000;

/** Waits until the campaign is so far, and gives its figures. */
export async function liveUntil(server, condition, what) {
  let live;
  await until(
    async () => {
      live = (await ask(server, "GET", "/api/live")).live;
      return condition(live);
    },
    () => `${what}; the console says: ${JSON.stringify(live)}`,
    SETTLES_WITHIN_MS,
  );
  return live;
}

/** Results that are imported, complete, interrupted, running and of a browser; gives the numbers of some. */
export async function fillStore(server) {
  const builds = Object.entries(BUILDS).map(([name, latencies]) => {
    const file = join(server.folder, `${name}.csv`);
    writeFileSync(file, csvOf(latencies));
    return file;
  });
  execFileSync(BINARY, ["import", "--store", server.store, ...IMPORTED, ...builds], { stdio: "pipe" });
  await ask(server, "POST", "/api/measurements", MEASUREMENT);
  await start(server, SHORT);
  await liveUntil(server, ({ state }) => state === "idle", "the short experiment ends");
  await start(server, `# Another file is another campaign.\n${SHORT}`);
  await liveUntil(server, ({ runs_done }) => runs_done > 0, "a run has ended");
  await ask(server, "DELETE", "/api/campaigns");
  await liveUntil(server, ({ state }) => state === "idle", "the experiment is interrupted");
  await start(server, LONG);
  await liveUntil(server, ({ run }) => (run?.delivered ?? 0) > 1000, "the long experiment delivers");
  const results = await ask(server, "GET", "/api/results");
  const idOf = (name, state) => results.find((one) => one.name === name && one.state === state).id;
  return {
    imported: idOf("cometd-idle-full", "imported"),
    baseline: idOf("baseline", "imported"),
    candidate: idOf("candidate", "imported"),
    browser: idOf("browser", "imported"),
    complete: idOf("short", "complete"),
  };
}

/** The longest name that the chat and the auction house take. */
export const LONG_NAME = "Wilhelmina-von-Hohenlohe";
const LONG_WORD = "Donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbeamtengesellschaft";
const SENTENCES =
  "A brass sextant of 1890 in its mahogany box, with four telescopes and seven shades, regularly cleaned. " +
  "The arc is divided to ten minutes, and the vernier reads ten seconds. ";

/** People who talk in the lobby and in a room of their own, and to `name` in private, and stay until the test ends. */
export async function fillChat(t, server, name) {
  const [grace, long] = [new Peer(server), new Peer(server)];
  await grace.enter("Grace");
  await long.enter(LONG_NAME);
  for (const one of [grace, long]) one.stay(t);
  await long.join("a-room-with-a-rather-long-name");
  await grace.say(`Hello ${name}, do you see this at once?`);
  await long.say(SENTENCES.repeat(3));
  await long.say(LONG_WORD);
  await grace.say("مرحبا بالجميع");
  await grace.say("https://example.org/a/rather/long/address?with=many&parameters=that&do=not&break=anywhere");
  await grace.tell(name, "And this only you see.");
  await long.tell(name, "Nor is this for the others.");
}

/** Items of every kind for `name`, who owns the last, led one and was outbid on another; gives their numbers. */
export async function fillAuction(server) {
  const [ada, grace, long] = [new Peer(server), new Peer(server), new Peer(server)];
  await grace.register("grace");
  await long.register(LONG_NAME);
  await ada.register("ada");
  // Long enough to be bid on, and to be taken at all by a house where an auction lasts a second at least.
  const lasts_ms = 5000;
  const barometer = await grace.offer("Barometer", { description: "Aneroid", lasts_ms });
  await long.bid(barometer, 1250);
  const umbrella = await grace.offer("Broken umbrella", { lasts_ms });
  const sextant = await grace.offer("Sextant", { description: SENTENCES.repeat(5).trim(), minimum_cents: 25_000 });
  const word = await long.offer(LONG_WORD, { description: LONG_WORD.repeat(3), minimum_cents: 999_999_999_900 });
  const clock = await long.offer(`${SENTENCES.slice(0, 100)}`, { description: "ساعة" });
  await grace.bid(clock, 1_234_567);
  for (const [bidder, cents] of [[ada, 26_000], [long, 30_050], [ada, 31_000], [long, 40_000], [ada, 41_000]]) {
    await bidder.bid(sextant, cents);
  }
  const own = await ada.offer("Globe", { description: "Terrestrial, 30 cm, of 1920; two dents in Asia." });
  await grace.bid(own, 4200);
  const over = [barometer, umbrella];
  const isOver = (items) => items.filter(({ id, ended }) => ended && over.includes(id)).length === over.length;
  await until(async () => isOver(await grace.items()), "two auctions have ended");
  return { barometer, umbrella, sextant, word, clock, own };
}
