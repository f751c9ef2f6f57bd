import type { ExperimentReport, Series } from "../generated/report";
import { SYMBOLS, type SymbolShape } from "./symbols";

/** How a series looks, the same everywhere on the page. */
export interface Identity {
  key: string;
  label: string;
  /** A CSS colour; it follows the colour scheme and the medium. */
  colour: string;
  symbol: SymbolShape;
  /** An SVG dash array, or undefined for a solid line. */
  dash: string | undefined;
}

/** Slots of the palette in `tokens.css`, so that a transport looks alike in every report. */
const TRANSPORT_SLOTS = [
  "websocket",
  "sse",
  "http-streaming",
  "long-polling",
  "polling",
  "websocket-polling",
  "webtransport",
  "webrtc",
];

const DASHES = [undefined, "7 3", "2 3", "8 3 2 3", "12 4", "4 2 1 2"];

/**
 * Colour and marker stand for the transport and the dash for whose it is. When every series has the
 * same transport, colour and marker stand for the subject instead: otherwise all would look alike.
 */
export function identify(experiments: readonly ExperimentReport[]): Map<string, Identity> {
  const all = new Map<string, Series>();
  for (const experiment of experiments) {
    for (const series of experiment.series) {
      if (!all.has(series.key)) all.set(series.key, series);
    }
  }
  const series = [...all.values()];
  const transports = [...new Set(series.map((one) => one.transport))];
  const owners = [...new Set(series.map(ownerOf))];
  const byOwner = transports.length === 1 && owners.length > 1;
  const slots = slotsOf(byOwner ? owners : transports);

  const identities = new Map<string, Identity>();
  for (const one of series) {
    const owner = owners.indexOf(ownerOf(one));
    const slot = slots.get(byOwner ? ownerOf(one) : one.transport) ?? 0;
    const wrapped = slot % SYMBOLS.length;
    identities.set(one.key, {
      key: one.key,
      label: one.label,
      colour: `var(--series-${wrapped + 1})`,
      symbol: SYMBOLS[wrapped] ?? "circle",
      dash: DASHES[(byOwner ? Math.floor(slot / SYMBOLS.length) : owner) % DASHES.length],
    });
  }
  return identities;
}

/** Transports have their own slots; other names take those that nobody in this report needs. */
function slotsOf(names: readonly string[]): Map<string, number> {
  const every = SYMBOLS.map((_, slot) => slot);
  const unused = every.filter((slot) => !names.includes(TRANSPORT_SLOTS[slot] ?? ""));
  const free = unused.length > 0 ? unused : every;
  const slots = new Map<string, number>();
  let taken = 0;
  for (const name of names) {
    const own = TRANSPORT_SLOTS.indexOf(name);
    if (own >= 0) slots.set(name, own);
    else {
      const around = Math.floor(taken / free.length) * SYMBOLS.length;
      slots.set(name, (free[taken % free.length] ?? 0) + around);
      taken++;
    }
  }
  return slots;
}

/** What a key says besides the transport: the subject, and the variant where there is one. */
function ownerOf(series: Series): string {
  const rest = series.key.split("/").filter((part) => part !== series.transport);
  return rest.length > 0 ? rest.join("/") : series.subject;
}
