import { parse } from "smol-toml";
import { describe, expect, test } from "vitest";
import {
  DEFAULT_DRAFT,
  type Draft,
  draftChoices,
  problemsOf,
  readDraft,
  SCENARIOS,
  toggleItem,
} from "./experiment-draft";
import { experimentToml } from "./experiment-toml";

const draft = (changes: Partial<Draft> = {}): Draft => ({ ...DEFAULT_DRAFT, ...changes });

/** The lines of a draft's file from one on, up to the next empty one. */
function part(changes: Partial<Draft>, from: string): string[] {
  const lines = experimentToml(draft(changes)).split("\n");
  const start = lines.indexOf(from);
  return lines.slice(start, lines.indexOf("", start));
}

test("the form as it begins", () => {
  expect(experimentToml(DEFAULT_DRAFT)).toBe(`name = "my-experiment"
title = "My experiment"
subjects = [ "pushlab" ]
transports = [ "websocket", "sse", "long-polling" ]
clients = [ 50, 200 ]
repeats = 3

[scenario]
kind = "chat"
interval_ms = 1000
payload_bytes = 100

[phases]
connect_ms = 5000
idle_ms = 500
warm_up_ms = 1000
load_ms = 3000
drain_ms = 3000
after_ms = 500
`);
});

describe("scenarios", () => {
  test("a feed's interval is in µs", () => {
    expect(part({ scenario: "feed", interval: "0.5" }, "[scenario]")).toEqual([
      "[scenario]",
      'kind = "feed"',
      "interval_us = 500",
      "payload_bytes = 100",
    ]);
  });

  test("rooms have theirs", () => {
    expect(part({ scenario: "rooms" }, "[scenario]")).toContain("rooms_per_client = 1");
  });

  test("one without fields has its kind alone", () => {
    expect(part({ scenario: "idle" }, "[scenario]")).toEqual(["[scenario]", 'kind = "idle"']);
  });

  test("an unknown one is the usual one", () => {
    expect(part({ scenario: "constructor" }, "[scenario]")[1]).toBe('kind = "chat"');
  });
});

test("networks are left out when there are none", () => {
  expect(experimentToml(draft())).not.toContain("networks");
  expect(experimentToml(draft({ networks: "4g local" }))).toContain('networks = [ "4g", "local" ]');
});

test("text cannot leave its quotation marks", () => {
  for (const title of ['a"b\\c\nd\u007f', 'x"\nrepeats = 99', "'''", "\u0000 ü 😀"]) {
    const toml = experimentToml(draft({ title, clients: '1, "], x = ["' }));
    expect(toml.match(/^repeats/gm)).toHaveLength(1);
    expect(parse(toml)).toMatchObject({ title, clients: [1, '"]', "x", "=", '["'] });
  }
});

test("numbers have no leading zeros, and what is none is quoted", () => {
  expect(experimentToml(draft({ repeats: "007" }))).toContain("repeats = 7\n");
  expect(experimentToml(draft({ repeats: "0" }))).toContain("repeats = 0\n");
  expect(experimentToml(draft({ repeats: "many" }))).toContain('repeats = "many"\n');
});

describe("the address", () => {
  test("a draft survives it", () => {
    const typed = draft({ title: "", clients: "1,2 3", scenario: "feed" });
    const query = new URLSearchParams();
    for (const [name, value] of Object.entries(draftChoices(typed))) {
      if (value !== null) query.set(name, value);
    }
    expect(query.toString()).toBe("title=&clients=1%2C2+3&scenario=feed");
    expect(readDraft(query)).toEqual(typed);
  });
});

test("items keep their order", () => {
  expect(toggleItem("c a", "b", ["a", "b", "c"])).toBe("a b c");
  expect(toggleItem("a b c", "b", ["a", "b", "c"])).toBe("a c");
});

describe("problems", () => {
  test("the form begins without any, whatever the scenario", () => {
    for (const scenario of Object.keys(SCENARIOS)) {
      expect(problemsOf(draft({ scenario }))).toEqual({});
    }
  });

  test("each field says what it should be", () => {
    const wrong = {
      name: "My Chat",
      clients: "10, x",
      interval: "0",
      load: "1.5",
      transports: " ",
    };
    expect(Object.keys(problemsOf(draft(wrong))).sort()).toEqual(Object.keys(wrong).sort());
  });

  test("fields that are not in use are not judged", () => {
    expect(problemsOf(draft({ scenario: "idle", interval: "x" }))).toEqual({});
  });
});
