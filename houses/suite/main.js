// Orders every house: installs it, checks it over each of its transports, and says what was found.

import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import {
  accessSync,
  constants,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import { INSTALLED } from "./checks.js";
import { linesOf, packagesOf } from "./count.js";
import { measure } from "./figures.js";
import { endAll, run } from "./processes.js";
import { defectLines, markdown, progress, write } from "./report.js";
import { tryTransport } from "./trial.js";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const README = join(ROOT, "README.md");
/** Packages from a slow registry, or a build from scratch. */
const INSTALL_MS = 15 * 60_000;

/** What a house is built from, and what is built. */
const SOURCE = /(lock|package)[^/]*\.json$|go\.(mod|sum)$|pom\.xml$|\.(go|java|scala)$/;
const BUILT = /(^|\/)(node_modules|target|lib)\//;

const USAGE = `usage: houses/run [HOUSE…] [OPTIONS]

  HOUSE…             folders in houses; by default all
  --transport NAME   over this one only; may be given again
  --checks           no figures, which take about as long as the checks
  --json FILE        writes everything that was found
  --from FILE        reads what --json wrote instead of running anything; may be given again
  --write            writes the results into houses/README.md
  --help             prints this

PUSHLAB names the binary of Pushlab's own house; by default it is target/release/pushlab.
Exit code 1: a house fails a check that it does not admit. 2: nothing was checked.`;

class Failure extends Error {}

/** The process that orders a house apart; it ends what it started when it is told to. */
let apart = null;

function read(name) {
  const folder = join(ROOT, name);
  const path = join(folder, "house.json");
  if (!existsSync(path)) throw new Failure(`there is no house ${name}: ${path} is missing`);
  try {
    return { ...JSON.parse(readFileSync(path, "utf8")), name, folder };
  } catch (error) {
    throw new Failure(`${path}: ${error.message}`);
  }
}

function all() {
  const entries = readdirSync(ROOT, { withFileTypes: true }).filter((entry) => entry.isDirectory());
  return entries
    .map(({ name }) => name)
    .filter((name) => existsSync(join(ROOT, name, "house.json")));
}

/** Whether a program can be started: by its path, or from PATH. */
function has(tool) {
  const places = tool === "pushlab" ? [process.env.PUSHLAB] : [];
  if (places.length === 0)
    for (const folder of process.env.PATH.split(delimiter)) places.push(join(folder, tool));
  return places.some((place) => {
    try {
      accessSync(place, constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}

/** Runs a house's commands, unless the same ones ran with the same lock files. */
async function install(house) {
  const hash = createHash("sha256").update(JSON.stringify([house.install, process.version]));
  for (const name of readdirSync(house.folder, { recursive: true }).sort())
    if (SOURCE.test(name) && !BUILT.test(name)) hash.update(readFileSync(join(house.folder, name)));
  const stamp = join(house.folder, ".installed");
  const is = hash.digest("hex");
  if (existsSync(stamp) && readFileSync(stamp, "utf8") === is) return;
  for (const command of house.install) {
    progress(`${house.title}: ${command.join(" ")}`);
    try {
      await run(command, { cwd: house.folder }, INSTALL_MS);
    } catch (error) {
      throw new Error(`it was not installed: ${error.message}`);
    }
  }
  writeFileSync(stamp, is);
}

async function order(house, { transports, hasFigures }) {
  const found = {
    house: house.name,
    title: house.title,
    admits: house.admits ?? {},
    server_lines: linesOf(house, house.server),
    client_lines: linesOf(house, house.client),
    packages: { npm: 0, other: 0 },
    transports: [],
  };
  let connect;
  try {
    await install(house);
    found.packages = packagesOf(house);
    ({ connect } = await import(pathToFileURL(join(house.folder, "client.mjs")).href));
  } catch (error) {
    // The other houses are ordered all the same.
    const checks = [{ name: INSTALLED, defect: error.message }];
    found.transports.push({ transport: transports[0], has_started: false, checks, figures: null });
    return found;
  }
  for (const transport of transports) {
    progress(`${house.title} over ${transport}`);
    const isFirst = transport === house.transports[0];
    const tried = await tryTransport({ ...house, connect }, transport, { isFirst });
    const figures =
      hasFigures && tried.has_started ? await measure({ ...house, connect }, transport) : null;
    found.transports.push({ transport, ...tried, figures });
  }
  return found;
}

/**
 * The same in a process of its own, because a client library may leave behind what the next one trips over: atmosphere.js
 * makes a `window`, by which others take themselves to be in a browser.
 */
async function orderApart(house, transports, hasChecksAlone) {
  const folder = mkdtempSync(join(tmpdir(), "pushlab-house-"));
  const path = join(folder, "found.json");
  const options = transports.flatMap((transport) => ["--transport", transport]);
  if (hasChecksAlone) options.push("--checks");
  const program = fileURLToPath(import.meta.url);
  try {
    const stdio = ["ignore", "ignore", "inherit"];
    apart = spawn(process.execPath, [program, house.name, ...options, "--json", path], { stdio });
    const [code, signal] = await once(apart, "exit");
    if (!existsSync(path)) throw new Error(`its process ended with ${signal ?? `exit code ${code}`}`);
    return JSON.parse(readFileSync(path, "utf8"));
  } catch (error) {
    throw new Failure(`${house.title}: ${error.message}`);
  } finally {
    apart = null;
    rmSync(folder, { recursive: true });
  }
}

async function main() {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      transport: { type: "string", multiple: true },
      checks: { type: "boolean", default: false },
      json: { type: "string" },
      from: { type: "string", multiple: true },
      write: { type: "boolean", default: false },
      help: { type: "boolean", default: false },
    },
  });
  if (values.help) return console.log(USAGE);
  const target = process.env.CARGO_TARGET_DIR ?? join(ROOT, "../target");
  // Houses are started in their own folders, so a relative path would mean another file.
  process.env.PUSHLAB = resolve(process.env.PUSHLAB ?? join(target, "release/pushlab"));
  const result = { at: new Date().toISOString(), node: process.version, houses: [], left_out: [] };
  if (values.from) {
    for (const path of values.from) {
      try {
        takeIn(result, JSON.parse(readFileSync(path, "utf8")));
      } catch (error) {
        throw new Failure(`--from ${path}: ${error.message}`);
      }
    }
  } else {
    const houses = (positionals.length ? positionals : all()).map(read);
    for (const house of houses) {
      const missing = (house.needs ?? []).filter((tool) => !has(tool));
      if (missing.length) {
        result.left_out.push({ house: house.name, title: house.title, missing });
        continue;
      }
      const transports = values.transport
        ? house.transports.filter((each) => values.transport.includes(each))
        : house.transports;
      if (transports.length === 0) continue;
      if (houses.length === 1)
        result.houses.push(await order(house, { transports, hasFigures: !values.checks }));
      else takeIn(result, await orderApart(house, transports, values.checks));
    }
  }
  if (values.json) {
    try {
      writeFileSync(values.json, `${JSON.stringify(result, null, 2)}\n`);
    } catch (error) {
      throw new Failure(`--json: ${error.message}`);
    }
  }
  console.log(markdown(result));
  const defects = defectLines(result);
  for (const line of defects.lines) console.log(line);
  if (values.write) write(README, result);
  if (result.houses.length === 0) throw new Failure("no house was checked");
  process.exitCode = defects.count > 0 ? 1 : 0;
}

/** Takes another file's houses in, and its transports where the house is there already. */
function takeIn(result, other) {
  result.at = other.at;
  for (const house of other.houses) {
    const known = result.houses.find(({ house: name }) => name === house.house);
    if (!known) result.houses.push(house);
    else known.transports.push(...house.transports);
  }
  result.left_out.push(...other.left_out);
  const isThere = ({ house }) => result.houses.some((each) => each.house === house);
  result.left_out = result.left_out.filter((each) => !isThere(each));
}

function end() {
  apart?.kill("SIGTERM");
  endAll();
}

for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"])
  process.on(signal, () => {
    end();
    process.exit(130);
  });
process.on("exit", end);

try {
  await main();
} catch (error) {
  const isKnown = error instanceof Failure || error.code?.startsWith("ERR_PARSE_ARGS");
  console.error(`houses/run: ${isKnown ? error.message : error.stack}`);
  process.exitCode = 2;
}
// A library may hold a timer or a connection that is of no use any more.
process.exit();
