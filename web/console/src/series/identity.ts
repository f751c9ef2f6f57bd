import type { ExperimentReport, Series } from "../generated/report";
import { SYMBOLS, type SymbolShape } from "./symbols";

/** How a series looks, the same everywhere on the page. */
export interface Identity {
  key: string;
  label: string;
  /** A CSS colour; it follows the colour scheme and the medium. */
  colour: string;
  symbol: SymbolShape;
  /** Markers of published numbers are outlines: nobody measured them here. */
  hollow: boolean;
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

/** The colour of one of the server's own transports. */
export function colourOf(transport: string): string {
  return `var(--series-${TRANSPORT_SLOTS.indexOf(transport) + 1})`;
}

/** Long strokes for whose measurement it is, short ones for what was printed. */
const DASHES = [undefined, "12 3", "12 3 3 3", "18 3 8 3", "12 3 3 3 3 3", "20 5"];
const PUBLISHED_DASHES = ["4 3", "2 3", "5 2 1 2", "1 2"];

/**
 * Colour and marker stand for the transport and the dash for whose it is. When every measured series
 * has the same transport, colour and marker stand for the subject instead: otherwise all would look
 * alike. Published numbers have the colour of what was measured of the same transport.
 */
export function identify(experiments: readonly ExperimentReport[]): Map<string, Identity> {
  const series = distinctSeries(experiments);
  const measured = series.filter((one) => one.origin !== "published");
  const counted = measured.length > 0 ? measured : series;
  const transports = [...new Set(series.map((one) => one.transport))];
  const owners = [...new Set(counted.map(ownerOf))];
  const byOwner = new Set(counted.map((one) => one.transport)).size === 1 && owners.length > 1;
  const slots = slotsOf(byOwner ? [...new Set(series.map(ownerOf))] : transports);
  const printed = publishedOrder(experiments);

  const identities = new Map<string, Identity>();
  for (const one of series) {
    const published = one.origin === "published";
    const slot = slots.get(byOwner ? ownerOf(one) : one.transport) ?? 0;
    const wrapped = slot % SYMBOLS.length;
    const around = byOwner ? Math.floor(slot / SYMBOLS.length) : owners.indexOf(ownerOf(one));
    identities.set(one.key, {
      key: one.key,
      label: one.label,
      colour: `var(--series-${wrapped + 1})`,
      symbol: SYMBOLS[wrapped] ?? "circle",
      hollow: published,
      dash: published
        ? PUBLISHED_DASHES[(printed.get(one.key) ?? 0) % PUBLISHED_DASHES.length]
        : DASHES[Math.max(0, around) % DASHES.length],
    });
  }
  return identities;
}

function distinctSeries(experiments: readonly ExperimentReport[]): Series[] {
  const all = new Map<string, Series>();
  for (const experiment of experiments) {
    for (const series of experiment.series) {
      if (!all.has(series.key)) all.set(series.key, series);
    }
  }
  return [...all.values()];
}

/** Published series by their number among those of one transport in one experiment. */
function publishedOrder(experiments: readonly ExperimentReport[]): Map<string, number> {
  const order = new Map<string, number>();
  for (const experiment of experiments) {
    const seen = new Map<string, number>();
    for (const { key, origin, transport } of experiment.series) {
      if (origin !== "published") continue;
      const before = seen.get(transport) ?? 0;
      seen.set(transport, before + 1);
      if (!order.has(key)) order.set(key, before);
    }
  }
  return order;
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
