// Runs test files in this one process, so that each browser is started once for all of them.
//
//   node one-process.js FILE…

import { resolve } from "node:path";
import { pathToFileURL } from "node:url";

for (const file of process.argv.slice(2)) await import(pathToFileURL(resolve(file)));
