// Runs test files in this one process, so that each browser is started once for all of them.
//
//   node one-process.js FILE…

import { resolve } from "node:path";
import { describe } from "node:test";
import { pathToFileURL } from "node:url";
// The first to load it is whose end ends the browsers.
import "./browsers.js";

/** How many files go on side by side: tests wait more than they work. */
const LANES = 3;
/** Those that follow the focus go on alone, since Firefox has one window with it, and those whose pages measure. */
const ALONE = ["keyboard.test.js", "measure.test.js"];
/** The longest begins first. */
const LONGEST = "pages.test.js";

const files = process.argv.slice(2);
const isAlone = (file) => ALONE.includes(file);
const define = (file) => describe(file, { concurrency: 1 }, () => import(pathToFileURL(resolve(file))));

describe("alone", { concurrency: 1 }, () => files.filter(isAlone).forEach(define));
describe("side by side", { concurrency: LANES }, () => {
  const others = files.filter((file) => !isAlone(file));
  others.sort((a, b) => Number(b === LONGEST) - Number(a === LONGEST)).forEach(define);
});
