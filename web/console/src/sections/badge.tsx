import type { Agreement, ComparisonRow } from "../generated/report";

export type Kind = Agreement | ComparisonRow["change"] | "raised" | "quiet";

/** Sign and tone of what was found; the word beside it says the same without colour. */
const LOOKS: Record<Kind, { sign: string; tone: "good" | "bad" | "open" | "plain" }> = {
  confirmed: { sign: "✓", tone: "good" },
  refuted: { sign: "✗", tone: "bad" },
  undecided: { sign: "?", tone: "open" },
  raised: { sign: "!", tone: "bad" },
  quiet: { sign: "✓", tone: "good" },
  better: { sign: "▲", tone: "good" },
  worse: { sign: "▼", tone: "bad" },
  different: { sign: "≠", tone: "open" },
  equivalent: { sign: "=", tone: "plain" },
  unknown: { sign: "?", tone: "plain" },
};

export function Badge({ kind, count }: { kind: Kind; count?: number }) {
  const look = Object.hasOwn(LOOKS, kind) ? LOOKS[kind] : LOOKS.unknown;
  return (
    <span class={`badge badge-${look.tone}`}>
      <span aria-hidden="true">{look.sign}</span>
      {count === undefined ? kind : `${count} ${kind}`}
    </span>
  );
}

/** How many there are of each kind, in the order given; kinds that do not occur are left out. */
export function Tally({ kinds, of }: { kinds: readonly Kind[]; of: readonly Kind[] }) {
  return (
    <p class="tally">
      {kinds.map((kind) => {
        const count = of.filter((one) => one === kind).length;
        return count === 0 ? null : <Badge key={kind} kind={kind} count={count} />;
      })}
    </p>
  );
}
