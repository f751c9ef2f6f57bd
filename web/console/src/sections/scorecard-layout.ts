import { soundEstimate } from "../format/estimate";
import { lackingOf } from "../format/lacking";
import { formatNumber, THIN } from "../format/number";
import type {
  CardCell,
  CardOption,
  CardRow,
  Lacking,
  NarrowedCard,
  Scorecard,
  Workload,
} from "../generated/report";

/** Kinds of applications, in the order in which they are told. */
const WORKLOADS: readonly (readonly [Workload, title: string])[] = [
  ["broadcast", "Broadcast"],
  ["chat", "Chat"],
  ["dashboard", "Dashboard"],
  ["mobile", "Mobile networks"],
  ["many-idle", "Many idle clients"],
];

export interface WorkloadChoice {
  workload: Workload;
  title: string;
}

/** The workloads on whose choice some row bears. */
export function workloadsOf(card: Scorecard): WorkloadChoice[] {
  const bears = (workload: Workload) => card.rows.some((row) => row.workloads.includes(workload));
  return WORKLOADS.filter(([workload]) => bears(workload)).map(([workload, title]) => ({
    workload,
    title,
  }));
}

/**
 * The rows that bear on a workload, without the options that are too late for it; all where none is chosen. Those in
 * which something was shown to be far behind come first.
 */
export function rowsFor(card: Scorecard, workload: Workload | null): CardRow[] {
  const isFar = (row: CardRow) =>
    row.cells.some((cell) => {
      const sound = soundCell(cell);
      return sound !== null && conclusionText(sound).tone === "far";
    });
  const rows = bearingOn(card, workload);
  return [...rows.filter(isFar), ...rows.filter((row) => !isFar(row))];
}

function bearingOn(card: Scorecard, workload: Workload | null): CardRow[] {
  if (workload === null) return card.rows;
  const narrowed = narrowedFor(card, workload)?.rows ?? [];
  const bearing = card.rows.filter((row) => row.workloads.includes(workload));
  return bearing.map((row) => narrowed.find((one) => quantityKey(one) === quantityKey(row)) ?? row);
}

/** The options that are too late for a workload. */
export function lateFor(card: Scorecard, workload: Workload | null): CardOption[] {
  const late = narrowedFor(card, workload)?.late ?? [];
  return card.options.filter(({ key }) => late.includes(key));
}

function narrowedFor(card: Scorecard, workload: Workload | null): NarrowedCard | undefined {
  return card.narrowed?.find(({ workloads }) => workload !== null && workloads.includes(workload));
}

/** The same for a quantity of the card and for what is left of it for a workload. */
export function quantityKey(row: CardRow): string {
  return `${row.experiment} ${row.title}`;
}

/** Options that are measured in one of these rows at least, with a figure or without, or shown not to work. */
export function optionsIn(card: Scorecard, rows: readonly CardRow[]): CardOption[] {
  return card.options.filter((option, at) =>
    rows.some(
      (row) =>
        failureOf(row, option) !== null ||
        lackingOf(row.lacking, option.key) !== null ||
        soundCell(row.cells[at]) !== null,
    ),
  );
}

/** Why an option does not work in a row, or null. */
export function failureOf(row: CardRow, { key }: Pick<CardOption, "key">): string | null {
  const failures = row.failures ?? {};
  return Object.hasOwn(failures, key) ? (failures[key] ?? null) : null;
}

/** A cell that can be drawn, or null: what is not a number is null in JSON. */
export function soundCell(cell: CardCell | null | undefined): CardCell | null {
  if (cell == null || soundEstimate(cell.estimate) === null) return null;
  const { factor, low, high } = cell.against;
  if (!Number.isFinite(factor)) return null;
  if (Number.isFinite(low) && Number.isFinite(high)) return cell;
  return { ...cell, against: { ...cell.against, low: factor, high: factor } };
}

/** Keeps a sign beside its word. */
export const NO_BREAK = "\u00a0";

/** An option with what it has in a row. */
export interface Entry {
  option: CardOption;
  cell: CardCell;
}

/** An option that does not work, with the reason. */
export interface Failure {
  option: CardOption;
  reason: string;
}

/** What does not work in a row. */
export function failuresOf(card: Scorecard, row: CardRow): Failure[] {
  return card.options.flatMap((option) => {
    const reason = failureOf(row, option);
    return reason === null ? [] : [{ option, reason }];
  });
}

/** An option without a figure, though it was measured. */
export interface Unmeasured {
  option: CardOption;
  lacking: Lacking;
}

/** Who has no figure in a row though it was measured: what was not reached, then of what nothing is known. */
export function lackingIn(card: Scorecard, row: CardRow): Unmeasured[] {
  const all = card.options.flatMap((option) => {
    const lacking = lackingOf(row.lacking, option.key);
    return lacking === null ? [] : [{ option, lacking }];
  });
  const isUnknown = ({ lacking }: Unmeasured) => Number(lacking.why !== "not-reached");
  return all.sort((a, b) => isUnknown(a) - isUnknown(b));
}

/** What works and was measured in a row, the best first; what has too few blocks to be compared stands last. */
export function entriesOf(card: Scorecard, row: CardRow): Entry[] {
  const entries = card.options.flatMap((option, at) => {
    const cell = soundCell(row.cells[at]);
    return cell === null || failureOf(row, option) !== null ? [] : [{ option, cell }];
  });
  const isFew = ({ cell }: Entry) => Number(cell.against.conclusion === "too-few");
  return entries.sort(
    (a, b) => isFew(a) - isFew(b) || a.cell.against.factor - b.cell.against.factor,
  );
}

/** More options than this are folded away: a phone shows about as many at once. */
const ENTRIES_MAX = 12;

/**
 * The first options of a row, and those that wait behind a button; one or two would not be worth it. What is advised is
 * never folded away.
 */
export function foldEntries<E extends { option: CardOption }>(
  entries: readonly E[],
  choices: readonly string[],
): [shown: E[], folded: E[]] {
  const isShown = ({ option }: E, at: number) => at < ENTRIES_MAX || choices.includes(option.key);
  const folded = entries.filter((entry, at) => !isShown(entry, at));
  return folded.length > 2 ? [entries.filter(isShown), folded] : [[...entries], []];
}

/** Scale of all bars that are shown: the same length is the same factor, whatever is compared. */
export interface FactorScale {
  /** Where bars are cut off. */
  end: number;
  ticks: readonly number[];
  /** Per cent of the track's width, 0 to 100. */
  place: (factor: number) => number;
}

/** Ends of the scale, with what is written below it. */
const ENDS: readonly (readonly [end: number, ticks: readonly number[]])[] = [
  [2, [1, 1.5, 2]],
  [5, [1, 2, 5]],
  [10, [1, 2, 5, 10]],
];
/** Where factors of hundreds are cut off, so that bars below two can still be told apart. */
const LONGEST = [30, [1, 3, 10, 30]] as const;

/** A logarithmic scale that holds every factor of these rows, up to the longest of scales. */
export function factorScale(rows: readonly CardRow[]): FactorScale {
  const largest = Math.max(
    1,
    ...rows.flatMap((row) => row.cells.map((cell) => soundCell(cell)?.against.factor ?? 1)),
  );
  const [end, ticks] = ENDS.find(([end]) => largest <= end) ?? LONGEST;
  const place = (factor: number) =>
    Math.min(100, Math.max(0, (100 * Math.log(factor)) / Math.log(end)));
  return { end, ticks, place };
}

/** Before a factor where it is a bound: the load generator reached its limit before a server, which may do better. */
export function boundSign(cell: CardCell, best: CardCell): string {
  // Of two that may both do better nobody knows which way their ratio goes.
  if (cell.is_lower_bound === best.is_lower_bound || cell === best) return "";
  return best.is_lower_bound ? `≥${THIN}` : `≤${THIN}`;
}

/** `4.71×`. */
export function factorText(factor: number): string {
  return `${formatNumber(factor)}×`;
}

export type Tone = "best" | "equivalent" | "worse" | "far" | "open" | "few";

/** Factor from which on a difference stands out. */
const FAR = 2;

export interface ConclusionText {
  tone: Tone;
  /** Says in one letter what the words say. */
  sign: string;
  words: string;
  /** For a narrow cell. */
  short: string;
}

/** What was shown about an option in a row. */
export function conclusionText({ against }: CardCell): ConclusionText {
  switch (against.conclusion) {
    case "best":
      return { tone: "best", sign: "★", words: "best", short: "best" };
    case "equivalent":
      return { tone: "equivalent", sign: "≈", words: "equivalent", short: "equivalent" };
    case "different": {
      const low = factorText(against.low);
      // It is above 1 however little, which a rounded number would hide.
      if (low === factorText(1)) {
        return { tone: "worse", sign: "✗", words: "more than 1×", short: "> 1×" };
      }
      const tone = against.factor >= FAR ? "far" : "worse";
      return { tone, sign: "✗", words: `at least ${low}`, short: `≥ ${low}` };
    }
    case "too-few":
      return { tone: "few", sign: "–", words: "too few blocks", short: "too few" };
    default:
      return { tone: "open", sign: "?", words: "undecided", short: "undecided" };
  }
}

/** Keys of what is advised and of the runner-up. */
export function choicesOf(card: Scorecard, workload: Workload | null): readonly string[] {
  return card.advice.find((one) => one.workload === workload)?.choices ?? [];
}

/** A reason longer than this is folded behind its beginning. */
const REASON_LENGTH_MAX = 90;

/** The beginning of a long reason, cut after a word if it has any, or null where it is short enough to be shown. */
export function reasonHead(reason: string): string | null {
  if (reason.length <= REASON_LENGTH_MAX) return null;
  const head = reason.slice(0, REASON_LENGTH_MAX);
  const end = head.lastIndexOf(" ");
  return `${head.slice(0, end > 0 ? end : REASON_LENGTH_MAX).replace(/[\s;:,.]+$/, "")} …`;
}

/** Sentences of the verdict that the card does not say too. */
export function besideCard(verdict: readonly string[], card: Scorecard | null | undefined) {
  if (card == null) return verdict;
  return verdict.filter((sentence) => !card.notes.includes(sentence));
}
