import { expect, test } from "vitest";
import { formatDuration, formatTimeLeft } from "./time-left";

test("time left has its two largest units and is never below nothing", () => {
  expect(formatTimeLeft(2 * 86_400_000 + 4 * 3_600_000)).toBe("2 d 4 h");
  expect(formatTimeLeft(3_600_000)).toBe("1 h 0 min");
  expect(formatTimeLeft(185_000)).toBe("3 min 05 s");
  expect(formatTimeLeft(8_400)).toBe("9 s");
  expect(formatTimeLeft(1)).toBe("1 s");
  expect(formatTimeLeft(0)).toBe("0 s");
  expect(formatTimeLeft(-5000)).toBe("0 s");
});

test("durations are in the unit that they are whole in", () => {
  expect(formatDuration(60_000)).toBe("1 minute");
  expect(formatDuration(5 * 60_000)).toBe("5 minutes");
  expect(formatDuration(3_600_000)).toBe("1 hour");
  expect(formatDuration(3 * 86_400_000)).toBe("3 days");
});
