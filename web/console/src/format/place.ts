import type { Axis } from "../generated/report";
import { formatExact, joinUnit, plural } from "./number";

/** The axis as the heading of a column: `Clients`, `Payload, B`. */
export function axisHeading(axis: Axis): string {
  return axis.unit === "" ? axis.title : `${axis.title}, ${axis.unit}`;
}

/** A place on the axis within a sentence: `300 clients`, `payload 30 B`. */
export function placeText(axis: Axis, x: number): string {
  if (axis.name === "clients") return plural(x, "client");
  return `${lowerFirst(axis.title)} ${joinUnit(formatExact(x), axis.unit)}`;
}

/** Abbreviations keep their capitals. */
export function lowerFirst(text: string): string {
  return /^.\p{Lower}/u.test(text) ? text.charAt(0).toLowerCase() + text.slice(1) : text;
}

export function upperFirst(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
