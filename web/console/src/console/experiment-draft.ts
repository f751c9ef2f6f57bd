import type { Transport } from "../generated/console";

/** Transports of an experiment, as its file names them. */
export const EXPERIMENT_TRANSPORTS: readonly Transport[] = [
  "websocket",
  "sse",
  "http-streaming",
  "long-polling",
  "polling",
  "websocket-polling",
];

/** Networks that come with the program; docs/networks.md describes them. */
export const NETWORKS = ["local", "lan-100", "wifi", "4g", "3g", "satellite", "lossy"] as const;

/** Traffics, with the fields that each needs beside its kind. */
export const SCENARIOS = {
  feed: { about: "a back end publishes to everybody", fields: ["interval", "payload"] },
  "fan-out": { about: "publishers as fast as they can", fields: ["publishers", "payload"] },
  chat: { about: "everybody writes to everybody", fields: ["interval", "payload"] },
  rooms: {
    about: "everybody writes to some rooms",
    fields: ["rooms", "rooms_per_client", "interval", "payload"],
  },
  echo: { about: "everybody gets their own back", fields: ["interval", "payload"] },
  upstream: { about: "clients write, nobody receives", fields: ["interval", "payload"] },
  request: { about: "one request after the other", fields: ["payload"] },
  idle: { about: "connected and silent", fields: [] },
} as const satisfies Record<string, { about: string; fields: readonly DraftField[] }>;

export type ScenarioKind = keyof typeof SCENARIOS;

/** The phases that have a length, in their order. */
export const PHASE_FIELDS = ["connect", "idle", "warm_up", "load", "drain", "after"] as const;

/** What the form begins with: small enough to be done within two minutes. */
export const DEFAULT_DRAFT = {
  name: "my-experiment",
  title: "My experiment",
  subjects: "pushlab",
  transports: "websocket sse long-polling",
  clients: "50, 200",
  scenario: "chat",
  interval: "1000",
  payload: "100",
  publishers: "1",
  rooms: "10",
  rooms_per_client: "1",
  repeats: "3",
  networks: "",
  connect: "5000",
  idle: "500",
  warm_up: "1000",
  load: "3000",
  drain: "3000",
  after: "500",
};

export type DraftField = keyof typeof DEFAULT_DRAFT;

/** The form's fields as they were typed; lists are separated by spaces or commas. */
export type Draft = Record<DraftField, string>;

const FIELDS = Object.keys(DEFAULT_DRAFT) as DraftField[];

/** The draft that an address has; what it does not name is as the form begins. */
export function readDraft(query: URLSearchParams): Draft {
  const given = FIELDS.map((field) => [field, query.get(field) ?? DEFAULT_DRAFT[field]]);
  return Object.fromEntries(given) as Draft;
}

/** What of a draft belongs into the address: null for what is as the form begins. */
export function draftChoices(draft: Draft): Record<DraftField, string | null> {
  const choices = FIELDS.map((field) => [
    field,
    draft[field] === DEFAULT_DRAFT[field] ? null : draft[field],
  ]);
  return Object.fromEntries(choices) as Record<DraftField, string | null>;
}

/** The kind of traffic; that of the default where the address names none that is known. */
export function scenarioOf(draft: Draft): ScenarioKind {
  return (Object.hasOwn(SCENARIOS, draft.scenario) ? draft.scenario : "chat") as ScenarioKind;
}

/** The items of a list as it was typed. */
export function splitList(text: string): string[] {
  return text.split(/[\s,]+/).filter(Boolean);
}

/** A list with an item added or taken out, in the order of all that there are. */
export function toggleItem(list: string, item: string, all: readonly string[]): string {
  const items = splitList(list);
  const wants = (one: string) => (one === item ? !items.includes(item) : items.includes(one));
  return all.filter(wants).join(" ");
}

/** What is wrong with a field, for those whose text has no place in a file; the server judges the rest. */
export function problemOf(field: DraftField, text: string): string | null {
  switch (field) {
    case "name":
      return /^[a-z0-9][a-z0-9-]*$/.test(text) ? null : "a to z, 0 to 9, hyphens";
    case "title":
      return text.trim() === "" ? "one line for people" : null;
    case "subjects":
    case "transports":
      return splitList(text).length === 0 ? "at least one" : null;
    case "clients": {
      const items = splitList(text);
      const isGood = items.length > 0 && items.every((one) => /^[1-9]\d*$/.test(one));
      return isGood ? null : "whole numbers, e.g. 50, 200";
    }
    case "interval":
      return Number(text) > 0 ? null : "a number of ms above 0";
    case "scenario":
    case "networks":
      return null;
    default:
      return /^\d+$/.test(text) ? null : "a whole number";
  }
}

/** The fields of a draft that are in use and wrong, with what they should be. */
export function problemsOf(draft: Draft): Partial<Record<DraftField, string>> {
  const kinds: readonly DraftField[] = SCENARIOS[scenarioOf(draft)].fields;
  const optional: readonly DraftField[] = [
    "interval",
    "payload",
    "publishers",
    "rooms",
    "rooms_per_client",
  ];
  const problems: Partial<Record<DraftField, string>> = {};
  for (const field of FIELDS) {
    if (optional.includes(field) && !kinds.includes(field)) continue;
    const problem = problemOf(field, draft[field]);
    if (problem !== null) problems[field] = problem;
  }
  return problems;
}
