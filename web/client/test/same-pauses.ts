import { beforeEach } from "vitest";
import { randomFrom } from "./random.ts";

// How often something is tried in a minute depends on the pauses between: they are the same in each run.
beforeEach(() => {
  Math.random = randomFrom(1);
});
