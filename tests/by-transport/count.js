// What there is of each program, and the table of docs/facts.md: `node tests/by-transport/count.js --write` writes it.

import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { countLines } from "../../houses/suite/count.js";

export const APPLICATIONS = ["broadcast", "chat"];
export const TRANSPORTS = ["websocket", "sse", "long-polling"];
export const FACTS = fileURLToPath(new URL("../../docs/facts.md", import.meta.url));

const ROUTE = /"((?:GET|POST) \/\w+)"/g;
/** What changes while the program runs: collections, and names that are bound anew. */
const STATE = /^ *(?:const (\w+) = (?:new Set\(\)|\[\])|let (\w+) )/gm;

/** Lines, routes and what is kept, of a program's text. */
export function count(text) {
  return {
    lines: countLines("program.js", text),
    routes: [...text.matchAll(ROUTE)].map(([, route]) => route),
    state: [...text.matchAll(STATE)].map(([, collection, name]) => collection ?? name),
  };
}

export function counted(application, transport, side) {
  const path = new URL(`${application}/${transport}-${side}.js`, import.meta.url);
  return count(readFileSync(path, "utf8"));
}

export function table() {
  const rows = [
    ["application", "transport", "server lines", "routes", "server keeps", "client lines", "client keeps"],
    Array(7).fill("---"),
  ];
  const listed = (names) => names.map((name) => `\`${name}\``).join(", ") || "–";
  for (const application of APPLICATIONS) {
    for (const transport of TRANSPORTS) {
      const server = counted(application, transport, "server");
      const client = counted(application, transport, "client");
      rows.push([
        application,
        transport,
        server.lines,
        listed(server.routes),
        listed(server.state),
        client.lines,
        listed(client.state),
      ]);
    }
  }
  return rows.map((row) => `| ${row.join(" | ")} |`).join("\n");
}

/** The text of docs/facts.md with the table in its place. */
export function withTable(text) {
  const [, before, after] = text.match(/^(.*<!-- by transport -->\n\n).*?(\n\n<!-- \/by transport -->.*)$/s);
  return `${before}${table()}${after}`;
}

if (process.argv[2] === "--write") writeFileSync(FACTS, withTable(readFileSync(FACTS, "utf8")));
