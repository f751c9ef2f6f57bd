import { expect, test } from "vitest";
import { bytesReport } from "../../fixtures/sample-bytes";
import type { DataCell, DataTable, Estimate } from "../generated/report";
import { stackOf } from "./stack-bars";

const figure = (value: number): Estimate => ({ value, low: value, high: value, runs: 3 });

type Row = [group: string, ...figures: (number | null)[]];

/** A table of two parts and their whole, each row in a group. */
function tableOf(...rows: Row[]): DataTable {
  const cells = rows.map(([group, ...figures]): DataCell[] => [
    "websocket",
    group,
    ...figures.map((value) => (value === null ? null : figure(value))),
  ]);
  return {
    title: "Bytes",
    note: "",
    columns: ["Series", "At", "Payload", "Framing", "Sum"].map((title) => ({ title, unit: "B" })),
    rows: cells,
    stack: {
      group: 1,
      parts: [
        { name: "payload", column: 2 },
        { name: "framing", column: 3 },
      ],
      wholes: [4],
    },
  };
}

test("a table that is no stack has no drawing", () => {
  expect(stackOf({ ...tableOf(["a", 1, 2, 3]), stack: null })).toBeNull();
  expect(stackOf(tableOf())).toBeNull();
  expect(stackOf(tableOf(["a", null, null, 3]))).toBeNull();
});

test("pieces stand one behind the other and are as long as their share", () => {
  const drawing = stackOf(tableOf(["a", 30, 10, 40], ["a", 15, 5, 20]));
  const [long, short] = drawing?.groups[0]?.bars ?? [];
  const [payload, framing] = long?.pieces ?? [];
  expect([payload?.start, framing?.start]).toEqual([0, payload?.width]);
  expect((payload?.width ?? 0) / (framing?.width ?? 1)).toBeCloseTo(3, 2);
  expect((payload?.width ?? 0) / (short?.pieces[0]?.width ?? 1)).toBeCloseTo(2, 2);
  expect(long?.whole?.value).toBe(40);
  expect(drawing).toMatchObject({ unit: "B", omitted: 0, isApart: false });
  expect(drawing?.groups.map((group) => group.title)).toEqual([""]);
});

test("what is missing or below zero has no length", () => {
  const drawing = stackOf(tableOf(["a", 30, -10, 20], ["a", 15, null, null]));
  expect(drawing?.parts.map((part) => part.name)).toEqual(["payload"]);
  expect(drawing?.groups[0]?.bars.map((bar) => bar.pieces.length)).toEqual([1, 1]);
  expect(drawing?.groups[0]?.bars[1]?.whole).toBeNull();
});

test("groups far apart have a scale each", () => {
  const ends = (drawing: ReturnType<typeof stackOf>) =>
    drawing?.groups.map(({ bars }) => {
      const last = bars[0]?.pieces.at(-1);
      return Math.round((last?.start ?? 0) + (last?.width ?? 0));
    });
  const near = stackOf(tableOf(["30 B", 30, 10, 40], ["60 B", 60, 20, 80]));
  expect([near?.isApart, ends(near)]).toEqual([false, [48, 95]]);
  const far = stackOf(tableOf(["30 B", 30, 10, 40], ["3000 B", 3000, 10, 3010]));
  expect([far?.isApart, ends(far)]).toEqual([true, [95, 95]]);
});

test("of many groups the first, the last and some between are drawn", () => {
  const groups = ["1", "2", "3", "4", "5", "6", "7"];
  const drawing = stackOf(tableOf(...groups.map((group): Row => [group, 1, 1, 2])));
  expect(drawing?.groups.map((group) => group.title)).toEqual(["1", "3", "5", "7"]);
  expect(drawing?.omitted).toBe(3);
  const eleven = Array.from({ length: 11 }, (_, index): Row => [`${index}`, 1]);
  expect(stackOf(tableOf(...eleven))?.groups.map((group) => group.title)).toEqual([
    ...["0", "3", "7", "10"],
  ]);
});

test("columns that are not there are not drawn", () => {
  const table = tableOf(["a", 1, 2, 3]);
  table.stack = {
    parts: [
      { name: "payload", column: 2 },
      { name: "x", column: 99 },
    ],
    wholes: [98, 4],
  };
  const drawing = stackOf(table);
  expect(drawing?.groups[0]?.bars[0]).toMatchObject({ pieces: [{ title: "Payload" }] });
  expect(drawing?.groups[0]?.bars[0]?.whole?.value).toBe(3);
});

test("the samples have what can be seen of each network", () => {
  const [networks, sizes] = bytesReport().experiments;
  const linked = stackOf(networks?.tables[0] as DataTable);
  expect(linked?.parts).toHaveLength(10);
  expect(linked?.groups[0]?.bars).toHaveLength(8);
  const plain = stackOf(sizes?.tables[0] as DataTable);
  expect(plain?.parts.map((part) => part.name)).not.toContain("tcp_ip_headers");
  expect([plain?.isApart, plain?.groups.length, plain?.omitted]).toEqual([true, 4, 2]);
});
