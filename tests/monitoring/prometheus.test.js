// Debian's Prometheus scrapes a server and a running campaign with the shipped configuration, and answers every
// question that the shipped dashboard asks.

import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import net from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { Server, until } from "../foreign/harness.js";
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

/** A process that is ended after the test `t`, by its own id. */
function start(t, command, options, cwd, end = "SIGTERM") {
  // A store of its own: the user's may be of another build.
  const env = { ...process.env, PUSHLAB_STORE: join(cwd, "results.db") };
  const child = spawn(command, options, { cwd, env, stdio: ["ignore", "ignore", "pipe"] });
  const started = { child, lines: [] };
  const isOver = () =>
    child.pid === undefined || child.exitCode !== null || child.signalCode !== null;
  child.on("error", (error) => started.lines.push(`${command}: ${error.message}`));
  createInterface({ input: child.stderr }).on("line", (line) => started.lines.push(line));
  t.after(async () => {
    if (isOver()) return;
    child.kill(end);
    await until(isOver, `${command} ends`).finally(() => child.kill("SIGKILL"));
  });
  /** Waits for something that needs the process. */
  started.until = (condition, what) =>
    until(
      async () => {
        assert.ok(!isOver(), `${command} has ended: ${started.lines.slice(-5).join(" / ")}`);
        return await condition();
      },
      () => `${what}; ${command} said ${started.lines.slice(-5).join(" / ")}`,
      30_000,
    );
  return started;
}

/** A port that was free a moment ago. */
async function freePort() {
  const listener = net.createServer().listen(0, "127.0.0.1");
  await once(listener, "listening");
  const { port } = listener.address();
  listener.close();
  await once(listener, "close");
  return port;
}

/** How often another port is tried when somebody else was faster. */
const MAX_TRIES = 5;

/** Starts Prometheus on the configuration in a folder; it is ready. */
async function startPrometheus(t, folder) {
  for (let tries = 1; ; tries += 1) {
    const address = `127.0.0.1:${await freePort()}`;
    const options = [
      "--config.file=prometheus.yml",
      `--storage.tsdb.path=${join(folder, "data")}`,
      `--web.listen-address=${address}`,
      "--log.level=warn",
    ];
    const started = start(t, "prometheus", options, folder);
    const { child, lines } = started;
    const isReady = () =>
      fetch(`http://${address}/-/ready`).then(
        (answer) => answer.ok,
        () => false,
      );
    try {
      await started.until(isReady, "Prometheus is ready");
      return { started, address };
    } catch (error) {
      const hasEnded = child.pid !== undefined && child.exitCode !== null;
      if (!hasEnded || tries === MAX_TRIES) throw error;
      await until(() => child.stderr.readableEnded, "Prometheus has said why it ended");
      if (!lines.some((line) => line.includes("address already in use"))) throw error;
    }
  }
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
  server = await Server.start(t);
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

  let config = readFileSync(CONFIG, "utf8");
  for (const [shipped, here] of [
    ["127.0.0.1:8000", `127.0.0.1:${server.port}`],
    ["127.0.0.1:9464", lab_address],
  ]) {
    assert.equal(config.split(`["${shipped}"]`).length, 2, `${shipped} is a target`);
    config = config.replace(`["${shipped}"]`, `["${here}"]`);
  }
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
    const page = await (await fetch(`http://${address}/metrics`)).text();
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
  const stats = JSON.parse((await server.request("GET", "/stats")).text);
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
