import { LACKING_WORDS } from "../format/lacking";
import type { CardOption, CardRow, Scorecard } from "../generated/report";
import { ChoiceMark } from "./choice-mark";
import {
  entriesOf,
  type Failure,
  failuresOf,
  foldEntries,
  lackingIn,
  reasonHead,
} from "./scorecard-layout";

interface CardWorksProps {
  card: Scorecard;
  row: CardRow;
  id: string;
  /** Keys of what is advised and of the runner-up. */
  choices: readonly string[];
}

/** A quantity that only says what works: yes, or no with the reason. */
export function CardWorks({ card, row, id, choices }: CardWorksProps) {
  const entries = entriesOf(card, row);
  const failures = failuresOf(card, row);
  const [shown, folded] = foldEntries(entries, choices);
  return (
    <section class="quantity" aria-labelledby={id}>
      <h3 id={id}>{row.title}</h3>
      {row.note !== "" && <p class="note">{row.note}</p>}
      <p class="best-value">
        Works:{" "}
        <strong>
          {entries.length} of {entries.length + failures.length}
        </strong>
      </p>
      <Working entries={shown} choices={choices} />
      {folded.length > 0 && (
        <details class="more-factors">
          <summary>{folded.length} more that work</summary>
          <Working entries={folded} choices={choices} />
        </details>
      )}
      <Failures failures={failures} word="no" />
      <NotMeasured card={card} row={row} />
    </section>
  );
}

interface WorkingProps {
  entries: readonly { option: CardOption }[];
  choices: readonly string[];
}

function Working({ entries, choices }: WorkingProps) {
  if (entries.length === 0) return null;
  return (
    <ul class="whether-list">
      {entries.map(({ option: { key, label } }) => (
        <li key={key} class="whether works">
          <span class="factor-label">
            <ChoiceMark option={key} choices={choices} />
            {label}
          </span>{" "}
          <span class="whether-word">yes</span>
        </li>
      ))}
    </ul>
  );
}

interface FailuresProps {
  failures: readonly Failure[];
  /** What is said of each. */
  word: "no" | "failed";
}

/** What does not work, after all that does. */
export function Failures({ failures, word }: FailuresProps) {
  const [shown, folded] = foldEntries(failures, []);
  if (shown.length === 0) return null;
  return (
    <>
      <FailureList failures={shown} word={word} />
      {folded.length > 0 && (
        <details class="more-factors">
          <summary>{folded.length} more that do not work</summary>
          <FailureList failures={folded} word={word} />
        </details>
      )}
    </>
  );
}

function FailureList({ failures, word }: FailuresProps) {
  return (
    <ul class="whether-list">
      {failures.map(({ option, reason }) => (
        <li key={option.key} class="whether fails">
          <span class="factor-label">{option.label}</span> <span class="whether-word">{word}</span>{" "}
          <Reason text={reason} />
        </li>
      ))}
    </ul>
  );
}

function Reason({ text }: { text: string }) {
  const head = reasonHead(text);
  if (head === null) return <span class="whether-reason">{text}</span>;
  return (
    <details class="whether-reason">
      <summary>{head}</summary>
      <p>{text}</p>
    </details>
  );
}

/** The options that were measured and have no figure, with the reasons. */
export function WithoutFigure({ card, row }: { card: Scorecard; row: CardRow }) {
  const all = lackingIn(card, row);
  if (all.length === 0) return null;
  return (
    <ul class="whether-list">
      {all.map(({ option, lacking }) => (
        <li key={option.key} class="whether">
          <span class="factor-label">{option.label}</span>{" "}
          <span class="whether-word">{LACKING_WORDS[lacking.why]}</span>{" "}
          <span class="whether-reason">{lacking.detail}</span>
        </li>
      ))}
    </ul>
  );
}

interface NotMeasuredProps {
  card: Scorecard;
  row: CardRow;
  /** Options of which something is known and told elsewhere. */
  late?: readonly CardOption[];
}

/** The options of which a row says nothing. */
export function NotMeasured({ card, row, late = [] }: NotMeasuredProps) {
  const told = [...entriesOf(card, row), ...failuresOf(card, row), ...lackingIn(card, row)];
  const known = new Set([...told.map(({ option }) => option), ...late].map(({ key }) => key));
  const missing = card.options.filter(({ key }) => !known.has(key));
  if (missing.length === 0) return null;
  return <p class="note">Not measured: {missing.map(({ label }) => label).join(", ")}.</p>;
}
