import {
  type Draft,
  PHASE_FIELDS,
  SCENARIOS,
  type ScenarioKind,
  scenarioOf,
  splitList,
} from "./experiment-draft";

/** The file of an experiment; fields that are wrong are written as they are, for the server to say where they stand. */
export function experimentToml(draft: Draft): string {
  const networks = splitList(draft.networks);
  const lines = [
    `name = ${quote(draft.name)}`,
    `title = ${quote(draft.title)}`,
    `subjects = ${quoteList(draft.subjects)}`,
    `transports = ${quoteList(draft.transports)}`,
    `clients = [${splitList(draft.clients).map(number).join(", ")}]`,
    ...(networks.length > 0 ? [`networks = ${quoteList(draft.networks)}`] : []),
    `repeats = ${number(draft.repeats)}`,
    "",
    "[scenario]",
    ...scenarioLines(draft),
    "",
    "[phases]",
    ...PHASE_FIELDS.map((phase) => `${phase}_ms = ${number(draft[phase])}`),
  ];
  return `${lines.join("\n")}\n`;
}

/** Those whose rate is one of the whole run have it in µs. */
const IN_MICROSECONDS: readonly ScenarioKind[] = ["feed", "rooms"];

function scenarioLines(draft: Draft): string[] {
  const kind = scenarioOf(draft);
  const lines = SCENARIOS[kind].fields.map((field) => {
    if (field === "payload") return `payload_bytes = ${number(draft.payload)}`;
    if (field !== "interval") return `${field} = ${number(draft[field])}`;
    return IN_MICROSECONDS.includes(kind)
      ? `interval_us = ${scaled(draft.interval, 1000)}`
      : `interval_ms = ${scaled(draft.interval, 1)}`;
  });
  return [`kind = ${quote(kind)}`, ...lines];
}

/** A TOML basic string: quotation mark, backslash and control characters are escaped (TOML 1.0, String). */
export function quote(text: string): string {
  const escaped = Array.from(text, (character) => {
    if (character === '"' || character === "\\") return `\\${character}`;
    const code = character.codePointAt(0) ?? 0;
    const isControl = code < 0x20 || code === 0x7f;
    return isControl ? `\\u${code.toString(16).padStart(4, "0")}` : character;
  });
  return `"${escaped.join("")}"`;
}

function quoteList(list: string): string {
  return `[${splitList(list).map(quote).join(", ")}]`;
}

/** A whole number without leading zeros, which TOML forbids; anything else as text, which the server refuses. */
function number(text: string): string {
  const trimmed = text.trim();
  return /^\d+$/.test(trimmed) ? trimmed.replace(/^0+(?=\d)/, "") : quote(trimmed);
}

function scaled(text: string, factor: number): string {
  const value = Number(text.trim() || Number.NaN) * factor;
  return Number.isFinite(value) && value > 0 ? String(Math.max(1, Math.round(value))) : quote(text);
}
