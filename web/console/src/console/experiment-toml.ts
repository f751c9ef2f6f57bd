import { stringify } from "smol-toml";
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
  return stringify({
    name: draft.name,
    title: draft.title,
    subjects: splitList(draft.subjects),
    transports: splitList(draft.transports),
    clients: splitList(draft.clients).map(number),
    ...(networks.length > 0 ? { networks } : {}),
    repeats: number(draft.repeats),
    scenario: scenario(draft),
    phases: Object.fromEntries(PHASE_FIELDS.map((phase) => [`${phase}_ms`, number(draft[phase])])),
  });
}

/** Those whose rate is one of the whole run have it in µs. */
const IN_MICROSECONDS: readonly ScenarioKind[] = ["feed", "rooms"];

function scenario(draft: Draft): Record<string, string | bigint> {
  const kind = scenarioOf(draft);
  const fields = SCENARIOS[kind].fields.map((field) => {
    if (field === "payload") return ["payload_bytes", number(draft.payload)];
    if (field !== "interval") return [field, number(draft[field])];
    return IN_MICROSECONDS.includes(kind)
      ? ["interval_us", scaled(draft.interval, 1000)]
      : ["interval_ms", scaled(draft.interval, 1)];
  });
  return { kind, ...Object.fromEntries(fields) };
}

/** A whole number, however large; anything else as text, which the server refuses. */
function number(text: string): bigint | string {
  const trimmed = text.trim();
  return /^\d+$/.test(trimmed) ? BigInt(trimmed) : trimmed;
}

function scaled(text: string, factor: number): bigint | string {
  const value = Number(text.trim() || Number.NaN) * factor;
  return Number.isFinite(value) && value > 0 ? BigInt(Math.max(1, Math.round(value))) : text;
}
