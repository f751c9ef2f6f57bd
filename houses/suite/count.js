// How much there is of a house: lines and packages.

import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { extname, join } from "node:path";

const SLASHES = { line: ["//"], block: ["/*", "*/"] };
const HASHES = { line: ["#"] };
const MARKUP = { block: ["<!--", "-->"] };
const COMMENTS = {
  ".conf": HASHES,
  ".cs": SLASHES,
  ".go": SLASHES,
  ".html": MARKUP,
  ".java": SLASHES,
  ".js": SLASHES,
  ".mjs": SLASHES,
  ".mod": SLASHES,
  ".properties": HASHES,
  ".py": HASHES,
  ".rs": SLASHES,
  ".scala": SLASHES,
  ".sh": HASHES,
  ".toml": HASHES,
  ".ts": SLASHES,
  ".xml": MARKUP,
};
/** Extensions are not enough: a build file of sbt, and Play's routes. */
const NAMES = { "build.sbt": SLASHES, routes: HASHES };

/** Lines that are neither empty nor comments alone. Rust's tests stand in the file they test and do not count. */
export function countLines(name, text) {
  const { line = [], block } = NAMES[name.split("/").at(-1)] ?? COMMENTS[extname(name)] ?? {};
  let count = 0;
  let isInside = false;
  for (const raw of text.split("\n")) {
    let rest = raw.trim();
    if (name.endsWith(".rs") && raw === "#[cfg(test)]") break;
    let isCode = false;
    while (rest) {
      if (isInside) {
        const end = rest.indexOf(block[1]);
        if (end < 0) break;
        isInside = false;
        rest = rest.slice(end + block[1].length).trim();
      } else if (block && rest.startsWith(block[0])) {
        isInside = true;
        rest = rest.slice(block[0].length);
      } else {
        isCode = !line.some((mark) => rest.startsWith(mark));
        // What begins behind code and goes on below it is rare enough to be left out.
        break;
      }
    }
    if (isCode) count += 1;
  }
  return count;
}

/** Lines of these files of a house. */
export function linesOf(house, files) {
  const lines = files.map((file) =>
    countLines(file, readFileSync(join(house.folder, file), "utf8")),
  );
  return lines.reduce((sum, each) => sum + each, 0);
}

/** npm packages in this folder of packages, and in theirs. */
function packagesIn(folder) {
  let count = 0;
  let entries = [];
  try {
    entries = readdirSync(folder, { withFileTypes: true });
  } catch {
    return 0;
  }
  for (const entry of entries) {
    const { name } = entry;
    if (name.startsWith(".")) continue;
    const path = join(folder, name);
    // A link leads to a package of this repository, with what it takes to build it.
    if (entry.isSymbolicLink()) count += 1;
    else if (name.startsWith("@")) count += packagesIn(path);
    else count += 1 + packagesIn(join(path, "node_modules"));
  }
  return count;
}

/** Packages that are installed: those of npm, and those that the house's `packages` command prints, a line each. */
export function packagesOf(house) {
  const npm = packagesIn(join(house.folder, "node_modules"));
  if (!house.packages) return { npm, other: 0 };
  const [command, ...args] = house.packages;
  const printed = execFileSync(command, args, { cwd: house.folder, encoding: "utf8" });
  const lines = printed.split("\n").filter((line) => line.trim());
  return { npm, other: new Set(lines).size };
}
