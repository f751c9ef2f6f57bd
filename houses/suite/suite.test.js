// The suite itself: a sound house passes every check, and each fault is found by the check that is there for it.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { AUDIT, CHECKS, STARTS, THROWS } from "./checks.js";
import { countLines } from "./count.js";
import { connect } from "./fake/client.js";
import { FAULTS } from "./fake/faults.js";
import { measure, quantile } from "./figures.js";
import { endAll } from "./processes.js";
import { frame } from "./raw.js";
import { defectLines, markdown } from "./report.js";
import { tryTransport } from "./trial.js";
import { patience } from "./waiting.js";

const folder = fileURLToPath(new URL("fake", import.meta.url));
const house = { ...JSON.parse(readFileSync(`${folder}/house.json`, "utf8")), folder, connect };

process.on("exit", endAll);

/** The names of the checks that fail. */
async function failing(fault, names) {
  // What a fault keeps from coming never comes; of a sound house nothing is late.
  patience.ms = fault ? 3000 : 10_000;
  const checks = CHECKS.filter(({ name }) => names === undefined || names.includes(name));
  const tried = await tryTransport(house, "lines", {
    isFirst: true,
    environment: { FAULT: fault },
    checks,
  });
  return tried.checks.filter(({ defect }) => defect !== null);
}

/** Which check finds which fault. */
const FOUND = {
  "register-and-log-in": ["spells names in small letters"],
  "names-are-unique": ["tells names apart by capitals"],
  "equal-names-at-once": ["takes equal names at once"],
  "wrong-password-and-unknown-name-alike": ["says that there is no such name"],
  "accounts-are-not-told": ["tells of registrations"],
  "names-that-can-be-had": ["trims names"],
  "names-that-every-object-has": ["finds what every object has"],
  passwords: ["pads short passwords"],
  "the-last-log-in-counts": ["has one session for all"],
  "accounts-outlive-connections": ["forgets accounts with their connections"],
  "nothing-without-log-in": ["asks nobody to log in"],
  "add-list-remove": ["lists what is no longer so", "does not tell whoever did it"],
  "only-ones-own-is-removed": ["lets anybody remove"],
  "text-is-kept": ["escapes text"],
  "limits-of-items": ["cuts long text"],
  "the-list-is-what-was-told": ["tells items as they were"],
  "higher-bids-are-taken": ["refuses bids on own items"],
  "lower-bids-are-refused": [
    "names a bid that would not be taken",
    "takes bids below the leading one",
  ],
  "equal-bids-at-once": ["takes equal bids at once"],
  "bids-on-what-is-not-there": ["finds what is not there"],
  "own-bids": ["lists own bids in no order"],
  "an-auction-ends": ["tells of no end", "takes bids after the end"],
  "not-before-its-end": ["ends auctions early"],
  "no-bid-after-the-end": ["takes bids after the end"],
  "several-end-at-once": ["ends one auction at a time"],
  "what-is-removed-does-not-end": ["ends what is removed"],
  "far-ends-do-not-come-at-once": ["ends far auctions at once"],
  "every-change-once-in-order": [
    "loses some changes",
    "tells some changes twice",
    "tells some changes too late",
    "tells some changes to half of them",
  ],
  "the-list-joins-the-changes": ["loses some changes"],
  "answers-go-to-whoever-asked": ["mixes answers up"],
  "missing-arguments": ["has defaults", "tells nothing any more to whom it refused"],
  "arguments-of-another-type": ["makes text of what is none"],
  "amounts-that-are-none": ["makes numbers of text"],
  "more-arguments-than-named": ["overlooks more arguments"],
  "more-arguments-than-an-id": ["overlooks more arguments"],
  "arguments-that-are-no-object": ["calls without an object"],
  "long-arguments": ["fails at long arguments"],
  "arguments-without-measure": ["ends at endless arguments"],
  "calls-that-there-are-not": ["does not answer other calls"],
  "garbage-instead-of-a-request": ["ends at garbage"],
  "garbage-in-posts": ["ends at garbage"],
  "broken-frames": ["ends at frames"],
  "garbage-in-messages": ["does what nobody said"],
  "garbage-in-sessions": ["ends at what a session says"],
  "cut-in-the-middle-of-a-call": ["does half of what was cut"],
  "cut-while-registering": ["leaves a name behind that nobody has"],
  "clients-come-and-go": ["keeps memory of all who came", "keeps connections open"],
};
/** Seen in what everybody heard, whichever checks are made. */
const AUDITED = {
  "loses some changes": "equal-bids-at-once",
  "tells some changes twice": "every-change-once-in-order",
  "tells some changes too late": "every-change-once-in-order",
  "tells some changes to half of them": "every-change-once-in-order",
};

test("a sound house passes every check", async () => {
  assert.deepEqual(await failing(undefined), []);
});

for (const [check, faults] of Object.entries(FOUND))
  for (const fault of faults)
    test(`${check} finds a house that ${fault}`, async () => {
      assert.ok(Object.hasOwn(FAULTS, fault), "there is such a fault");
      const defects = await failing(fault, [check]);
      assert.ok(
        defects.some(({ name }) => name === check),
        `${check} is not among ${JSON.stringify(defects)}`,
      );
    });

for (const [fault, check] of Object.entries(AUDITED))
  test(`the audit finds a house that ${fault}`, async () => {
    const defects = await failing(fault, [check]);
    assert.ok(
      defects.some(({ name }) => name === AUDIT),
      JSON.stringify(defects),
    );
  });

test("every fault is found by a check", () => {
  const found = new Set(Object.values(FOUND).flat());
  assert.deepEqual(
    Object.keys(FAULTS).filter((fault) => !found.has(fault)),
    [],
  );
});

test("every check finds a fault", () => {
  assert.deepEqual(
    CHECKS.filter(({ name }) => !FOUND[name]),
    [],
  );
});

test("a house that does not start is a defect", async () => {
  const broken = { ...house, start: ["node", "-e", "console.error('no room'); process.exit(3)"] };
  const { checks, has_started } = await tryTransport(broken, "lines");
  assert.equal(has_started, false);
  assert.equal(checks[0].name, STARTS);
  assert.match(checks[0].defect, /no room/);
  const missing = await tryTransport({ ...house, start: ["there-is-no-such-program"] }, "lines");
  assert.match(missing.checks[0].defect, /ENOENT/);
});

test("what a client throws where nobody catches is a defect", () => {
  // In a process of its own, because the test runner catches it too.
  const program = `
    import { connect } from "./fake/client.js";
    import { tryTransport } from "./trial.js";
import { patience } from "./waiting.js";
    const house = { ...${JSON.stringify(house)}, connect(...args) {
      setTimeout(() => { throw new Error("nobody catches this"); });
      return connect(...args);
    } };
    const { checks } = await tryTransport(house, "lines", { checks: [] });
    console.log(JSON.stringify(checks));`;
  const here = fileURLToPath(new URL(".", import.meta.url));
  const args = ["--input-type=module", "--eval", program];
  const checks = JSON.parse(execFileSync(process.execPath, args, { cwd: here, encoding: "utf8" }));
  assert.match(checks.find(({ name }) => name === THROWS).defect, /nobody catches this/);
});

test("figures of a house whose client does not come back", async () => {
  const { latencies, cut, failures } = await measure(house, "lines");
  assert.deepEqual(failures, []);
  for (const action of ["add", "bid", "remove"]) {
    const { answered, heard } = latencies[action];
    assert.equal(answered.calls, heard.calls);
    for (const { median_ms, p99_ms } of [answered, heard])
      assert.ok(0 < median_ms && median_ms <= p99_ms);
  }
  assert.deepEqual([cut.back, cut.came, cut.missed], [0, 0, 50]);
});

test("quantiles are nearest ranks", () => {
  const values = Array.from({ length: 200 }, (_, n) => 200 - n);
  assert.deepEqual(
    [quantile(values, 0.5), quantile(values, 0.99), quantile([7], 0.99)],
    [100, 198, 7],
  );
});

test("lines of code are counted without comments", () => {
  const script =
    '// one\n\ncode();\n/* two\nthree */ more();\n/* four */\nconst url = "http://x"; // five\n';
  assert.equal(countLines("a.mjs", script), 3);
  assert.equal(countLines("conf/routes", "# one\nGET / x\n"), 1);
  assert.equal(countLines("pom.xml", "<a>\n<!-- one\ntwo -->\n</a>\n"), 2);
  assert.equal(countLines("a.rs", "//! one\nfn a() {}\n#[cfg(test)]\nmod tests {}\n"), 1);
});

test("frames have the length that they tell", () => {
  for (const [size, head] of [
    [1, 2],
    [126, 4],
    [70_000, 10],
  ])
    assert.equal(frame("x".repeat(size)).length, head + 4 + size);
});

test("what a house admits is told apart", () => {
  const checks = (a, b) => [
    { name: "a", defect: a },
    { name: "b", defect: b },
  ];
  const found = {
    title: "House",
    packages: { npm: 2, other: 1 },
    admits: { a: "its framework cannot", b: "no longer so", c: "never checked" },
    transports: [
      { transport: "one", checks: checks("broken", null) },
      { transport: "two", checks: checks(null, null) },
    ],
  };
  const admitted = defectLines({ houses: [found] });
  assert.equal(admitted.count, 0);
  assert.match(admitted.lines.join("\n"), /^admitted: House, a \(one\): its framework cannot$/m);
  assert.match(admitted.lines.join("\n"), /^passes: House, b/m);
  const { count, lines } = defectLines({ houses: [{ ...found, admits: {} }] });
  assert.equal(count, 1);
  assert.match(lines[0], /^defect: House, a \(one\): broken$/);
  assert.match(
    markdown({ houses: [found], left_out: [] }),
    /\| 2 \+ 1 \| 2 \| 0 and 1 admitted \|/,
  );
});
