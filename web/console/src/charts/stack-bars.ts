import { soundEstimate } from "../format/estimate";
import type { DataCell, DataTable, Estimate } from "../generated/report";
import { type Domain, linearDomain, linearTicks } from "./axis";
import { percentOn } from "./dot-rows";

/** Up to so many groups are drawn, spread over all of them; the table has the others. */
const GROUPS_MAX = 4;
/** Groups whose longest bars differ by more get a scale each, or the short ones would not be seen. */
const APART_MIN = 3;
const TICKS = 5;

export interface StackPiece {
  /** Stable name of the part, which its look goes by. */
  name: string;
  title: string;
  figure: Estimate;
  /** Per cent of the track's width. */
  start: number;
  width: number;
}

export interface StackBar {
  label: string;
  pieces: StackPiece[];
  whole: Estimate | null;
}

export interface StackGroup {
  /** Empty where there is one group. */
  title: string;
  bars: StackBar[];
  /** On the bars' own scale, per cent of the track's width. */
  ticks: { value: number; at: number }[];
}

export interface StackDrawing {
  unit: string;
  /** Those that some bar has, from the inside outwards. */
  parts: { name: string; title: string }[];
  groups: StackGroup[];
  /** Whether each group has a scale of its own. */
  isApart: boolean;
  /** Groups that the table alone has. */
  omitted: number;
}

interface Row {
  group: string;
  label: string;
  pieces: Omit<StackPiece, "start" | "width">[];
  whole: Estimate | null;
}

/** A table's rows as bars; null where it has none, or nothing that can be stacked. */
export function stackOf(table: DataTable): StackDrawing | null {
  const { stack, columns } = table;
  if (stack == null) return null;
  const rows = table.rows
    .map((cells) => rowOf(table, cells))
    .filter((row) => row.pieces.length > 0);
  if (rows.length === 0) return null;
  const titles = [...new Set(rows.map((row) => row.group))];
  const drawn = spread(titles, GROUPS_MAX);
  const groups = drawn.map((title) => rows.filter((row) => row.group === title));
  const longest = groups.map((group) => Math.max(...group.map(lengthOf)));
  const isApart = Math.max(...longest) > APART_MIN * Math.min(...longest);
  const parts = stack.parts.filter(({ name }) =>
    rows.some((row) => row.pieces.some((piece) => piece.name === name)),
  );
  return {
    unit: columns[stack.parts[0]?.column ?? 0]?.unit ?? "",
    parts: parts.map(({ name, column }) => ({ name, title: columns[column]?.title ?? name })),
    groups: groups.map((group, index) => ({
      title: titles.length > 1 ? (drawn[index] ?? "") : "",
      ...drawGroup(group, linearDomain(isApart ? [longest[index] ?? 0] : longest)),
    })),
    isApart,
    omitted: titles.length - drawn.length,
  };
}

function rowOf({ stack, columns }: DataTable, cells: readonly DataCell[]): Row {
  const estimateAt = (column: number) => estimateOf(cells[column]);
  const pieces = (stack?.parts ?? []).flatMap(({ name, column }) => {
    const figure = estimateAt(column);
    // What is below zero, as a difference may be, has no length.
    if (figure === null || !(figure.value > 0)) return [];
    return { name, title: columns[column]?.title ?? name, figure };
  });
  const wholes = (stack?.wholes ?? []).map(estimateAt);
  return {
    group: stack?.group == null ? "" : textOf(cells[stack.group]),
    label: textOf(cells[0]),
    pieces,
    whole: wholes.find((figure) => figure !== null) ?? null,
  };
}

function drawGroup(rows: readonly Row[], domain: Domain): Omit<StackGroup, "title"> {
  const at = percentOn({ type: "linear", domain });
  const bars = rows.map(({ label, pieces, whole }) => {
    let end = 0;
    const placed = pieces.map((piece) => {
      const start = end;
      end += piece.figure.value;
      return { ...piece, start: at(start), width: Number((at(end) - at(start)).toFixed(2)) };
    });
    return { label, whole, pieces: placed };
  });
  return { bars, ticks: linearTicks(domain, TICKS).map((value) => ({ value, at: at(value) })) };
}

function lengthOf(row: Row): number {
  return row.pieces.reduce((sum, { figure }) => sum + figure.value, 0);
}

/** At most `most` of them: the first, the last, and others evenly between. */
function spread<T>(all: readonly T[], most: number): T[] {
  if (all.length <= most) return [...all];
  const step = (all.length - 1) / (most - 1);
  return all.filter((_, index) => {
    const nearest = Math.round(Math.round(index / step) * step);
    return nearest === index;
  });
}

function estimateOf(cell: DataCell | undefined): Estimate | null {
  return typeof cell === "object" && cell !== null ? soundEstimate(cell) : null;
}

function textOf(cell: DataCell | undefined): string {
  return typeof cell === "string" ? cell : "";
}
