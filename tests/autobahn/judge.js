// Judges what the Autobahn test suite found, and writes it as a table: judge.js [--write] PLAIN TLS, which are two of its
// index.json files.

import { readFileSync, writeFileSync } from "node:fs";

/** The suite's sections. */
const SECTIONS = {
  1: "framing",
  2: "pings and pongs",
  3: "reserved bits",
  4: "opcodes",
  5: "fragmentation",
  6: "UTF-8",
  7: "closing",
  9: "large and many messages",
  10: "fragments cut anywhere",
  12: "compression, messages of every size",
  13: "compression, every parameter",
};
const PAGE = new URL("../../docs/conformance.md", import.meta.url);
const [BEGIN, END] = ["<!-- autobahn -->\n", "<!-- end of autobahn -->"];

const isWriting = process.argv[2] === "--write";
const files = process.argv.slice(isWriting ? 3 : 2);
const runs = files.map((file) => JSON.parse(readFileSync(file, "utf8")).pushlab);

/** A case may be less strict only where text is refused at the end of its fragment, not at the first wrong byte. */
function isPassed(name, { behavior, behaviorClose }) {
  const may = name.startsWith("6.4.") ? ["NON-STRICT"] : [];
  const isGood = (found) => ["OK", "INFORMATIONAL", ...may].includes(found);
  return isGood(behavior) && isGood(behaviorClose);
}

let [passed, failed] = [0, 0];
const rows = Object.entries(SECTIONS).map(([section, title]) => {
  const counts = runs.map((run) => {
    const cases = Object.entries(run).filter(([name]) => name.startsWith(`${section}.`));
    const good = cases.filter(([name, found]) => isPassed(name, found));
    const bad = cases.filter(([name, found]) => !isPassed(name, found));
    for (const [name, found] of bad)
      console.log(`not passed: ${name}: ${found.behavior}, closing ${found.behaviorClose}`);
    const count = (wanted) => cases.filter(([, { behavior }]) => behavior === wanted).length;
    passed += good.length;
    failed += bad.length;
    const others = [
      [count("NON-STRICT"), "not strict"],
      [count("INFORMATIONAL"), "informational"],
    ].filter(([number]) => number > 0);
    const words = others.map(([number, what]) => `${number} ${what}`).join(", ");
    return `${good.length} of ${cases.length}${words && ` (${words})`}`;
  });
  return `| ${section} | ${title} | ${counts.join(" | ")} |\n`;
});
const table = `| section | what | plain | TLS |\n|---|---|---|---|\n${rows.join("")}`;
console.log(table);
if (isWriting) {
  const page = readFileSync(PAGE, "utf8");
  const [before, rest] = page.split(BEGIN);
  const [, after] = rest.split(END);
  writeFileSync(PAGE, `${before}${BEGIN}${table}${END}${after}`);
}
console.log(`${passed} passed, ${failed} failed`);
process.exitCode = failed > 0 || passed === 0 ? 1 : 0;
