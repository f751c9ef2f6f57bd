// What was found, for people: two tables and the list of defects.

import { readFileSync, writeFileSync } from "node:fs";
import { availableParallelism } from "node:os";

const BEGIN = "<!-- results -->";
const END = "<!-- /results -->";
const ACTIONS = ["register", "log-in", "list", "own-bids", "add", "bid", "remove"];
const NUMBERS = ["no", "one", "two", "three", "four", "five", "six", "seven", "eight"];

export const progress = (text) => console.error(`houses/run: ${text}`);

const row = (cells) => `| ${cells.join(" | ")} |`;
const table = (head, rows) => [row(head), row(head.map(() => "---")), ...rows.map(row)].join("\n");

/** What is missing, and where it comes from unless from a distribution. */
const hinted = (tool) => (tool === "pushlab" ? "pushlab (`make build`, or PUSHLAB)" : tool);

/** Two digits that mean something. */
function milliseconds(ms) {
  if (ms >= 10) return String(Math.round(ms));
  return ms.toFixed(ms >= 1 ? 1 : 2);
}

const pair = (summary) =>
  summary ? `${milliseconds(summary.median_ms)} / ${milliseconds(summary.p99_ms)}` : "–";

/** Each failed check of a house, with the transports over which it fails. */
function failures({ admits, transports }) {
  const failed = new Map();
  for (const { transport, checks } of transports)
    for (const { name, defect } of checks)
      if (defect) failed.set(name, [...(failed.get(name) ?? []), { transport, defect }]);
  return [...failed].map(([name, where]) => ({ name, where, why: admits[name] }));
}

function defectsCell(house) {
  const failed = failures(house);
  const admitted = failed.filter(({ why }) => why !== undefined).length;
  const others = failed.length - admitted;
  return admitted ? `${others} and ${admitted} admitted` : String(others);
}

function cutCells(cut) {
  if (!cut) return ["–", "–", "–"];
  if (cut.back === 0) return ["no", "–", `${cut.came} of ${cut.missed}`];
  const all = cut.back === cut.clients ? "" : `${cut.back} of ${cut.clients}, `;
  const loggedIn =
    cut.logged_in === cut.back
      ? "yes"
      : cut.logged_in === 0
        ? "no"
        : `${cut.logged_in} of ${cut.back}`;
  return [
    `${all}after ${(cut.back_after_ms / 1000).toFixed(1)} s`,
    loggedIn,
    `${cut.came} of ${cut.missed}`,
  ];
}

/** Tables in Markdown. */
export function markdown(result) {
  const parts = [];
  const facts = result.houses.map((house) => {
    const made = new Set(house.transports.flatMap(({ checks }) => checks.map(({ name }) => name)));
    const { npm, other } = house.packages;
    const packages = other ? `${npm} + ${other}` : npm;
    return [
      house.title,
      house.server_lines,
      house.client_lines,
      packages,
      made.size,
      defectsCell(house),
    ];
  });
  parts.push(
    table(["house", "server lines", "client lines", "packages", "checks", "defects"], facts),
  );
  const rows = result.houses.flatMap((house) =>
    house.transports.filter(({ figures }) => figures).map((each) => [house.title, each]),
  );
  if (rows.length) {
    const answers = rows.map(([title, { transport, figures }]) => [
      title,
      transport,
      ...ACTIONS.map((action) => pair(figures.latencies?.[action]?.answered)),
      pair(figures.latencies?.bid?.heard),
    ]);
    parts.push(
      "Milliseconds until the answer, median / 99th percentile, and until the last of 20 clients has heard a bid:",
    );
    parts.push(table(["house", "transport", ...ACTIONS, "bid heard"], answers));
    const cuts = rows.map(([title, { transport, figures }]) => [
      title,
      transport,
      ...cutCells(figures.cut),
    ]);
    parts.push("After three seconds without a network:");
    parts.push(
      table(
        [
          "house",
          "transport",
          "comes back by itself",
          "still logged in",
          "missed changes that come",
        ],
        cuts,
      ),
    );
  }
  for (const { title, missing } of result.left_out)
    parts.push(`${title} is left out: ${missing.map(hinted).join(", ")} not found.`);
  return `${parts.join("\n\n")}\n`;
}

/** Every defect by name, and how many of them nobody admits. */
export function defectLines({ houses }) {
  const lines = [];
  let count = 0;
  for (const house of houses) {
    for (const { name, where, why } of failures(house)) {
      const over = where.map(({ transport }) => transport).join(", ");
      if (why === undefined) count += 1;
      const kind = why === undefined ? "defect" : "admitted";
      lines.push(
        `${kind}: ${house.title}, ${name} (${over}): ${(why ?? where[0].defect).replaceAll(/\s+/g, " ")}`,
      );
    }
    const made = new Map();
    for (const { checks } of house.transports)
      for (const { name, defect } of checks)
        made.set(name, (made.get(name) ?? false) || defect !== null);
    for (const name of Object.keys(house.admits))
      if (made.get(name) === false)
        lines.push(`passes: ${house.title}, ${name}: admitted, but passes everywhere`);
    for (const { transport, figures } of house.transports)
      for (const failure of figures?.failures ?? [])
        lines.push(
          `no figure: ${house.title} over ${transport}, ${failure.replaceAll(/\s+/g, " ")}`,
        );
  }
  lines.push(count ? `${count} defects` : "no defects");
  return { lines, count };
}

/** Puts the tables between the markers of a page. */
export function write(path, result) {
  const page = readFileSync(path, "utf8");
  const [begin, end] = [page.indexOf(BEGIN), page.indexOf(END)];
  if (begin < 0 || end < begin) throw new Error(`${path} lacks ${BEGIN} and ${END}`);
  const cores = availableParallelism();
  const day = new Date(result.at).toLocaleDateString("en-GB", {
    day: "numeric",
    month: "long",
    year: "numeric",
  });
  const where = `${day}, ${NUMBERS[cores] ?? cores} shared core${cores === 1 ? "" : "s"}, Node.js ${result.node.slice(1)}:`;
  const defects = defectLines(result).lines.map((line) => `- ${line}`);
  const text = `${BEGIN}\n\n${where}\n\n${markdown(result)}\n${defects.join("\n")}\n\n${END}`;
  writeFileSync(path, page.slice(0, begin) + text + page.slice(end + END.length));
}
