// Judges what the Autobahn test suite found, and writes it as a table: judge.js [--write] PLAIN TLS, which are two of its
// index.json files; judge.js --each [--write] NAME=FILE… tells how many cases each server passes, and which it does not:
// there a file may be several of them, one behind the other.

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
/** Those that are tried on other servers. */
const OF_OTHERS = ["1", "2", "3", "4", "5", "6", "7", "9", "10"];
const PAGE = new URL("../../docs/conformance.md", import.meta.url);

const options = process.argv.slice(2).filter((word) => word.startsWith("--"));
const files = process.argv.slice(2).filter((word) => !word.startsWith("--"));
const read = (file) => JSON.parse(readFileSync(file, "utf8")).pushlab;

/** Prints a table, and puts it between its marks in the page. */
function tell(table, mark) {
  console.log(table);
  if (!options.includes("--write")) return;
  const [begin, end] = [`<!-- ${mark} -->\n`, `<!-- end of ${mark} -->`];
  const [before, rest] = readFileSync(PAGE, "utf8").split(begin);
  const [, after] = rest.split(end);
  writeFileSync(PAGE, `${before}${begin}${table}${end}${after}`);
}

/** A case may be less strict only where text is refused at the end of its fragment, not at the first wrong byte. */
function isPassed(name, { behavior, behaviorClose }) {
  const may = name.startsWith("6.4.") ? ["NON-STRICT"] : [];
  const isGood = (found) => ["OK", "INFORMATIONAL", ...may].includes(found);
  return isGood(behavior) && isGood(behaviorClose);
}

/** Servers one below the other, the sections of what they do not pass beside them. */
function tellEach() {
  const rows = files.map((word) => {
    const [name, file] = word.split("=");
    const found = readFileSync(file, "utf8")
      .split(/^(?=\{)/m)
      .map((text) => JSON.parse(text).pushlab);
    const cases = found.flatMap(Object.entries);
    const bad = cases.filter(([name, found]) => !isPassed(name, found)).map(([name]) => name);
    const sections = Object.entries(SECTIONS).map(([section, title]) => {
      const own = bad.filter((name) => name.startsWith(`${section}.`)).length;
      if (OF_OTHERS.includes(section) && !cases.some(([name]) => name.startsWith(`${section}.`)))
        return `${title}: did not end within five minutes`;
      return own > 0 && `${title} ${own}`;
    });
    return `| \`${name}\` | ${cases.length - bad.length} of ${cases.length} | ${sections.filter(Boolean).join(", ") || "–"} |\n`;
  });
  tell(
    `| server | cases passed | not passed |\n|---|---|---|\n${rows.join("")}`,
    "autobahn of others",
  );
}

if (options.includes("--each")) {
  tellEach();
  process.exit();
}
const runs = files.map(read);
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
tell(table, "autobahn");
console.log(`${passed} passed, ${failed} failed`);
process.exitCode = failed > 0 || passed === 0 ? 1 : 0;
