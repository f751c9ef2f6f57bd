// Debian's Prometheus scrapes a server and a running campaign with the shipped configuration, and answers every
// question that the shipped dashboard asks. The server has an access file, so Prometheus has its back end's key.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { example, put } from "../foreign/documents.js";
import { Server } from "../foreign/harness.js";
import { start, startOnFreePort } from "../foreign/programs.js";
import { Socket } from "../foreign/socket.js";

const SHIPPED = fileURLToPath(new URL("../../monitoring/", import.meta.url));
const CONFIG = join(SHIPPED, "prometheus.yml");
const DASHBOARD = JSON.parse(readFileSync(join(SHIPPED, "grafana-dashboard.json"), "utf8"));

const EXPERIMENT = `
name = "watched"
title = "Watched"
transports = ["sse"]
clients = [20]
repeats = 1
scenario = { kind = "chat", interval_ms = 200, payload_bytes = 71 }
# It is interrupted once everything has been seen.
phases = { connect_ms = 10000, idle_ms = 100, warm_up_ms = 100, load_ms = 120000, drain_ms = 1000, after_ms = 0 }
`;

const ACCESS = `
[back_end]
key_file = "back-end.key"

[[rule]]
who = "everybody"
channels = ["load"]
may = ["subscribe", "publish"]
`;
const KEY = randomBytes(32).toString("hex");
/** What the server's back end sends with a request. */
const AS_BACK_END = { headers: { authorization: `Bearer ${KEY}` } };

/** Starts Prometheus on the configuration in a folder; it is ready. */
async function startPrometheus(t, folder) {
  const options = (port) => [
    "--config.file=prometheus.yml",
    `--storage.tsdb.path=${join(folder, "data")}`,
    `--web.listen-address=127.0.0.1:${port}`,
    "--log.level=warn",
  ];
  const isReady = (port) =>
    fetch(`http://127.0.0.1:${port}/-/ready`).then(
      (answer) => answer.ok,
      () => false,
    );
  const { started, port } = await startOnFreePort(t, "prometheus", options, folder, isReady);
  return { started, address: `127.0.0.1:${port}` };
}

function promtool(options, input) {
  const { status, stdout, stderr, error } = spawnSync("promtool", options, {
    input,
    encoding: "utf8",
  });
  assert.equal(status, 0, `promtool ${options.join(" ")}: ${error ?? `${stdout}${stderr}`}`);
  return `${stdout}${stderr}`;
}

/** Every query of the dashboard, with where it stands. */
function queries() {
  const ofPanels = DASHBOARD.panels.flatMap((panel) =>
    (panel.targets ?? []).map(({ expr }) => ({ where: panel.title, expr })),
  );
  const ofAnnotations = DASHBOARD.annotations.list
    .filter(({ target }) => target)
    .map(({ name, target }) => ({ where: `annotation ${name}`, expr: target.expr }));
  return [...ofPanels, ...ofAnnotations];
}

/** What Grafana puts in place of variables. */
const fill = (expr) =>
  expr
    .replaceAll("$__rate_interval", "5s")
    .replaceAll("$server", "pushlab-server")
    .replaceAll("$lab", "pushlab-lab");

let server;
let publisher;
let published = Promise.resolve();
let lab;
let lab_address;
let prometheus;
let api;

before(async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "pushlab-monitoring-"));
  writeFileSync(join(folder, "access.toml"), ACCESS);
  writeFileSync(join(folder, "back-end.key"), KEY, { mode: 0o600 });
  server = await Server.start(t, ["--access", join(folder, "access.toml")]);
  const subscriber = await Socket.open(t, server, "channel=load");
  await subscriber.frame("cursor");
  publisher = setInterval(() => {
    published = published.then(() => server.publish("load", '{"some":"load"}'));
  }, 50);
  t.after(() => clearInterval(publisher));
  writeFileSync(join(folder, "watched.toml"), EXPERIMENT);
  lab = start(
    t,
    process.env.PUSHLAB,
    ["run", "watched.toml", "--metrics", "127.0.0.1:0"],
    folder,
    "SIGINT",
  );
  const announced = () => lab.lines.find((line) => line.startsWith("metrics at http://"));
  await lab.until(announced, "the campaign says where its metrics are");
  lab_address = new URL(announced().slice("metrics at ".length)).host;

  const job = "  - job_name: pushlab-server\n";
  const config = put(readFileSync(CONFIG, "utf8"), [
    ['["127.0.0.1:8000"]', `["127.0.0.1:${server.port}"]`],
    ['["127.0.0.1:9464"]', `["${lab_address}"]`],
    [job, `${job}    ${example("monitoring.md")}`],
  ]);
  writeFileSync(join(folder, "prometheus.yml"), config);
  let address;
  try {
    ({ started: prometheus, address } = await startPrometheus(t, folder));
  } finally {
    // These run in order: the folder is removed once nothing writes to it.
    t.after(() => rmSync(folder, { recursive: true, force: true, maxRetries: 10 }));
  }
  api = async (path, parameters = {}) => {
    const answer = await fetch(
      `http://${address}/api/v1/${path}?${new URLSearchParams(parameters)}`,
    );
    const { status, data, error } = await answer.json();
    assert.equal(status, "success", `${path} ${JSON.stringify(parameters)}: ${error}`);
    return data;
  };
});

test("the shipped configuration is right", () => {
  assert.match(promtool(["check", "config", CONFIG]), /is valid/);
});

test("the dashboard is whole", () => {
  assert.equal(DASHBOARD.schemaVersion, 42);
  const variables = DASHBOARD.templating.list.map(({ name }) => name);
  const known = [...variables, "__rate_interval"];
  const used = JSON.stringify(DASHBOARD).matchAll(/\$\{?(\w+)/g);
  for (const [, name] of used) assert.ok(known.includes(name), `$${name} is a variable`);
  const { panels } = DASHBOARD;
  assert.equal(new Set(panels.map(({ id }) => id)).size, panels.length, "no number comes twice");
  const taken = new Map();
  for (const { title, type, gridPos, datasource, targets } of panels) {
    for (let x = gridPos.x; x < gridPos.x + gridPos.w; x += 1) {
      for (let y = gridPos.y; y < gridPos.y + gridPos.h; y += 1) {
        assert.ok(x < 24 && !taken.has(`${x},${y}`), `${title} covers ${taken.get(`${x},${y}`)}`);
        taken.set(`${x},${y}`, title);
      }
    }
    if (type === "row") continue;
    assert.ok(["stat", "state-timeline", "timeseries"].includes(type), `${title} is a ${type}`);
    for (const source of [datasource, ...targets.map((target) => target.datasource)]) {
      assert.deepEqual(source, { type: "prometheus", uid: "${datasource}" }, title);
    }
    assert.equal(new Set(targets.map(({ refId }) => refId)).size, targets.length, title);
  }
});

test("promtool finds nothing to complain of in either page", async () => {
  for (const address of [`127.0.0.1:${server.port}`, lab_address]) {
    const page = await (await fetch(`http://${address}/metrics`, AS_BACK_END)).text();
    assert.match(page, /^pushlab_build_info\{version="[^"]+"\} 1$/m);
    assert.equal(promtool(["check", "metrics"], page), "", address);
  }
});

test("both targets are up", async () => {
  const health = async () => {
    const { activeTargets } = await api("targets", { state: "active" });
    return activeTargets.map(({ labels, health }) => `${labels.job} ${health}`).sort();
  };
  const expected = ["pushlab-lab up", "pushlab-server up"];
  await prometheus.until(async () => String(await health()) === String(expected), "both are up");
});

test("the dashboard's every query has an answer", async () => {
  for (const { where, expr } of queries()) {
    const hasData = async () => (await api("query", { query: fill(expr) })).result.length > 0;
    await prometheus.until(hasData, `${where}: ${fill(expr)} has data`);
  }
});

test("the dashboard's variables find the jobs", async () => {
  for (const [name, job] of [
    ["server", "pushlab-server"],
    ["lab", "pushlab-lab"],
  ]) {
    const { query } = DASHBOARD.templating.list.find((variable) => variable.name === name).query;
    const [, metric] = /^label_values\((\w+), job\)$/.exec(query);
    assert.deepEqual(await api("label/job/values", { "match[]": metric }), [job]);
  }
});

test("Prometheus counts what the server counts", async () => {
  clearInterval(publisher);
  await published;
  const stats = JSON.parse((await server.request("GET", "/stats", AS_BACK_END)).text);
  assert.ok(stats.received > 0 && stats.sent >= stats.received, JSON.stringify(stats));
  for (const [metric, expected] of [
    ["pushlab_publications_received_total", stats.received],
    ["pushlab_deliveries_sent_total", stats.sent],
    ['pushlab_connections{transport="websocket"}', stats.connections.websocket],
    ["pushlab_history_bytes", stats.history_bytes],
  ]) {
    const isEqual = async () => {
      const { result } = await api("query", { query: metric });
      return result.length === 1 && Number(result[0].value[1]) === expected;
    };
    await prometheus.until(isEqual, `${metric} is ${expected}`);
  }
});
