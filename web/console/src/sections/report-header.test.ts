import { expect, test } from "vitest";
import { isServed } from "./report-header";

test.each([
  ["http:", "/reports/12", true],
  ["https:", "/reports/compare", true],
  ["file:", "/reports/12", false],
  ["http:", "/reports/12.html", false],
  ["http:", "/archive/reports/12", false],
  ["http:", "/report.html", false],
])("%s %s is served by a console: %s", (protocol, pathname, is) => {
  expect(isServed({ protocol, pathname })).toBe(is);
});
