import { expect, test } from "vitest";
import { sampleCard } from "../../fixtures/sample-card";
import type { CardCell, CardRow, Scorecard } from "../generated/report";
import {
  besideCard,
  boundSign,
  choicesOf,
  conclusionText,
  entriesOf,
  factorScale,
  failuresOf,
  foldEntries,
  lackingIn,
  lateFor,
  optionsIn,
  reasonHead,
  rowsFor,
  workloadsOf,
} from "./scorecard-layout";

function rowOf(card: Scorecard, title: string): CardRow {
  const row = card.rows.find((one) => one.title === title);
  if (row === undefined) throw new Error(`no row ${title}`);
  return row;
}

function cellOf(against: Partial<CardCell["against"]>, is_lower_bound = false): CardCell {
  return {
    estimate: { value: 1, low: 1, high: 1, runs: 4 },
    is_lower_bound,
    against: { factor: 2, low: 1.5, high: 3, conclusion: "different", ...against },
  };
}

test("a workload is offered where some row bears on it, and shows those rows alone", () => {
  const card = sampleCard();
  expect(workloadsOf(card).map(({ workload }) => workload)).toEqual([
    ...["broadcast", "chat", "dashboard", "mobile", "many-idle"],
  ]);
  expect(rowsFor(card, "chat").map(({ title }) => title)).toEqual([
    ...["CPU per client message", "Latency, office network"],
  ]);
  expect(rowsFor(card, null)).toHaveLength(card.rows.length);
  const idle = { ...card, rows: rowsFor(card, "many-idle") };
  expect(workloadsOf(idle).map(({ workload }) => workload)).toEqual(["many-idle"]);
});

test("quantities in which something was shown to be twice as bad come first", () => {
  const card = sampleCard();
  card.rows.reverse();
  const isFar = (row: CardRow) =>
    row.cells.some((cell) => cell?.against.conclusion === "different" && cell.against.factor >= 2);
  const far = rowsFor(card, null).map(isFar);
  expect(far).toEqual([...far].sort((a, b) => Number(b) - Number(a)));
  expect(new Set(far).size).toBe(2);
  expect(card.rows.map(isFar)).not.toEqual(far);
});

test("a workload's rows are those without what is too late for it", () => {
  const card = sampleCard();
  const late = card.options[7];
  const [row] = rowsFor(card, "chat");
  if (late === undefined || row === undefined) throw new Error("the sample has neither");
  const left = { ...row, cells: row.cells.map((cell, at) => (at === 7 ? null : cell)) };
  card.narrowed = [{ workloads: ["chat"], late: [late.key], rows: [left] }];
  expect(rowsFor(card, "chat")[0]).toBe(left);
  expect(rowsFor(card, "chat")[1]).toBe(rowOf(card, "Latency, office network"));
  expect(new Set(rowsFor(card, null))).toEqual(new Set(card.rows));
  expect(lateFor(card, "chat")).toEqual([late]);
  expect(lateFor(card, "mobile")).toEqual([]);
});

test("what is measured stands in the order of its factors, too few blocks last", () => {
  const card = sampleCard();
  const entries = entriesOf(card, rowOf(card, "Latency, 4G, p99"));
  expect(entries.map(({ cell }) => cell.against.factor)).toEqual([
    ...[1, 1.02, 1.05, 1.3, 4.7, 6.3, 71],
    ...[1.1, 1.4],
  ]);
  expect(entries.map(({ option }) => option.label)).not.toContain("websocket-polling · http1");
});

test("the best of a row is not one with too few blocks", () => {
  const card = sampleCard();
  const row = rowOf(card, "Latency, 4G, p99");
  Object.assign(row.cells[4]?.against ?? {}, { factor: 1 });
  expect(entriesOf(card, row)[0]?.option.label).toBe("websocket · http2");
});

test.each([
  [12, 12, 0],
  [14, 14, 0],
  [15, 12, 3],
  [60, 12, 48],
])("of %i options %i are shown and %i folded", (count, shown, folded) => {
  const [entry] = entriesOf(sampleCard(), rowOf(sampleCard(), "CPU per delivery"));
  if (entry === undefined) throw new Error("no entry");
  const parts = foldEntries(Array(count).fill(entry), []);
  expect(parts.map((part) => part.length)).toEqual([shown, folded]);
});

test("what is advised is not folded away", () => {
  const [option] = sampleCard().options;
  if (option === undefined) throw new Error("no option");
  const entries = Array.from({ length: 20 }, (_, at) => ({ option: { ...option, key: `${at}` } }));
  const keys = (choices: string[]) =>
    foldEntries(entries, choices).map((part) => part.map(({ option }) => Number(option.key)));
  const first = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11];
  expect(keys(["3", "17"])).toEqual([
    [...first, 17],
    [12, 13, 14, 15, 16, 18, 19],
  ]);
  expect(keys(["12", "13", "14", "15", "16", "17"])[1]).toEqual([]);
});

test("what does not work has its reason, and is not measured", () => {
  const card = sampleCard();
  const row = rowOf(card, "Through nginx");
  expect(failuresOf(card, row)).toMatchObject([
    { option: { label: "websocket · http1" }, reason: expect.stringContaining("answered 426") },
    { option: { label: "websocket · http2" } },
    { option: { subject: "a-foreign-server" }, reason: "41 % of the messages arrived" },
  ]);
  expect(entriesOf(card, row)).toHaveLength(7);
  row.failures = { "pushlab/sse/http1": "the server ended" };
  expect(entriesOf(card, row)).toHaveLength(6);
  row.failures = undefined;
  expect(failuresOf(card, row)).toEqual([]);
  const unlucky = { ...card, options: card.options.map((one) => ({ ...one, key: "toString" })) };
  expect(failuresOf(unlucky, { ...row, failures: {} })).toEqual([]);
});

test("what fails in all rows that are shown has a line too", () => {
  const card = sampleCard();
  const row = rowOf(card, "Through nginx");
  expect(optionsIn(card, [row])).toHaveLength(10);
  expect(optionsIn(card, [{ ...row, failures: undefined }])).toHaveLength(7);
});

test("a long reason is cut after a word", () => {
  expect(reasonHead("the server ended with signal 9")).toBeNull();
  const head = reasonHead(`${"ten chars ".repeat(8)}most; frequent`);
  expect(head).toBe(`${"ten chars ".repeat(8)}most …`);
  expect(reasonHead("x".repeat(200))).toBe(`${"x".repeat(90)} …`);
});

test("options without a figure in the rows that are shown have no line", () => {
  const card = sampleCard();
  const [first] = card.rows;
  if (first === undefined) throw new Error("no rows");
  first.cells[3] = null;
  // What is not a number is null in JSON.
  Object.assign(first.cells[4]?.against ?? {}, { factor: null });
  const labels = optionsIn(card, [first]).map(({ label }) => label);
  expect(labels).toHaveLength(8);
  expect(labels).not.toContain("sse · http2");
  expect(labels).not.toContain("http-streaming · http1");
  expect(optionsIn(card, card.rows)).toHaveLength(10);
});

test("a scale is logarithmic from one, holds all factors, and cuts those of hundreds", () => {
  const card = sampleCard();
  const scale = factorScale(card.rows);
  expect(scale.end).toBe(30);
  expect([1, 30, 337].map(scale.place)).toEqual([0, 100, 100]);
  expect(scale.place(3)).toBeCloseTo((100 * Math.log(3)) / Math.log(30));
  expect(factorScale([rowOf(card, "Time to subscribe, 4G")]).end).toBe(2);
  expect(factorScale([]).end).toBe(2);
});

test.each([
  ["best", "best"],
  ["equivalent", "equivalent"],
  ["different", "at least 1.50×"],
  ["undecided", "undecided"],
  ["too-few", "too few blocks"],
] as const)("%s reads: %s", (conclusion, words) => {
  expect(conclusionText(cellOf({ conclusion })).words).toBe(words);
});

test("every conclusion has a sign of its own, which colour need not say", () => {
  const all = ["best", "equivalent", "different", "undecided", "too-few"] as const;
  const signs = all.map((conclusion) => conclusionText(cellOf({ conclusion })).sign);
  expect(new Set(signs).size).toBe(all.length);
});

test("what was shown to be worse is not rounded to as good", () => {
  expect(conclusionText(cellOf({ low: 1.0004 })).words).toBe("more than 1×");
});

test("a factor is a bound where the load was at its end for one side", () => {
  const [exact, bounded] = [cellOf({}), cellOf({}, true)];
  expect(boundSign(bounded, exact)).toMatch(/^≤/);
  expect(boundSign(exact, bounded)).toMatch(/^≥/);
  expect(boundSign(bounded, cellOf({}, true))).toBe("");
  expect(boundSign(exact, cellOf({}))).toBe("");
});

test("what is advised is that of the workload, and of none without one", () => {
  const card = sampleCard();
  expect(choicesOf(card, "broadcast")).toEqual(["pushlab/websocket/http1", "pushlab/sse/http2"]);
  expect(choicesOf(card, "mobile")).toEqual([]);
  expect(choicesOf(card, null)).toEqual([]);
});

test("the verdict does not say again what the card says", () => {
  const card = sampleCard();
  const certainty = "248 runs count.";
  const verdict = [...card.notes, certainty];
  expect(besideCard(verdict, card)).toEqual([certainty]);
  expect(besideCard(verdict, null)).toEqual(verdict);
});

test("what was measured and has no figure is told, and what was not reached before what is not known", () => {
  const card = sampleCard();
  const row = card.rows[0];
  const [first, second] = card.options;
  if (row === undefined || first === undefined || second === undefined) throw new Error("no row");
  row.lacking = {
    [first.key]: { why: "too-few", detail: "a p99 needs 1000" },
    [second.key]: { why: "not-reached", detail: "20 of 1000 never came" },
  };
  row.cells = row.cells.map((cell, at) => (at < 2 ? null : cell));
  expect(lackingIn(card, row).map(({ option }) => option.key)).toEqual([second.key, first.key]);
  expect(optionsIn(card, [row]).slice(0, 2)).toEqual([first, second]);
  expect(entriesOf(card, row).some(({ option }) => option === second)).toBe(false);
});
