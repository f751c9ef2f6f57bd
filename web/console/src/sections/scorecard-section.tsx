import type { CardOption, Scorecard, Workload } from "../generated/report";
import type { UpdateView } from "../view/use-view";
import type { ViewState } from "../view/view-state";
import { CardQuantity } from "./card-quantity";
import { CardReading } from "./card-reading";
import { CardTable } from "./card-table";
import { CardWorks } from "./card-works";
import {
  choicesOf,
  factorScale,
  lateFor,
  quantityKey,
  rowsFor,
  type WorkloadChoice,
  workloadsOf,
} from "./scorecard-layout";

interface ScorecardProps {
  card: Scorecard;
  view: ViewState;
  update: UpdateView;
}

/** What to choose, and what everything costs beside the best. */
export function ScorecardSection({ card, view, update }: ScorecardProps) {
  const workloads = workloadsOf(card);
  const chosen = workloads.find((one) => one.workload === view.workload) ?? null;
  const workload = chosen?.workload ?? null;
  const rows = rowsFor(card, workload);
  const late = lateFor(card, workload);
  const choices = choicesOf(card, workload);
  const scale = factorScale(rows);
  return (
    <section id="scorecard" tabIndex={-1} aria-labelledby="scorecard-title">
      <h2 id="scorecard-title">Scorecard</h2>
      {workloads.length > 0 && (
        <WorkloadChooser
          workloads={workloads}
          chosen={workload}
          choose={(next) => update({ workload: next })}
        />
      )}
      <div class="card-answer" aria-live="polite">
        {chosen === null ? (
          <Answers card={card} workloads={workloads} />
        ) : (
          <WorkloadAdvice card={card} chosen={chosen} shown={rows.length} late={late} />
        )}
      </div>
      <CardReading />
      <CardTable card={card} rows={rows} late={late} choices={choices} scale={scale} />
      <div class="quantities">
        {rows.map((row) => {
          const key = quantityKey(row);
          const at = card.rows.findIndex((one) => quantityKey(one) === key);
          const shared = { card, row, choices, id: `quantity-${at}` };
          return row.works ? (
            <CardWorks key={key} {...shared} />
          ) : (
            <CardQuantity key={key} {...shared} late={late} scale={scale} />
          );
        })}
      </div>
      {card.notes.map((note) => (
        <CardNote key={note} text={note} />
      ))}
    </section>
  );
}

interface ChooserProps {
  workloads: readonly WorkloadChoice[];
  chosen: Workload | null;
  choose: (workload: Workload | null) => void;
}

function WorkloadChooser({ workloads, chosen, choose }: ChooserProps) {
  const all = [{ workload: null, title: "Everything" }, ...workloads];
  return (
    <fieldset class="workloads">
      <legend>For my workload</legend>
      {all.map(({ workload, title }) => (
        <label key={title}>
          <input
            type="radio"
            name="workload"
            checked={workload === chosen}
            onChange={() => choose(workload)}
          />
          <span>{title}</span>
        </label>
      ))}
    </fieldset>
  );
}

/** What to choose for each workload. */
function Answers({ card, workloads }: { card: Scorecard; workloads: readonly WorkloadChoice[] }) {
  if (workloads.length === 0) return null;
  return (
    <dl class="answers">
      {workloads.map(({ workload, title }) => (
        <div key={workload}>
          <dt>{title}</dt>
          <dd>
            <AnswerText card={card} workload={workload} />
          </dd>
        </div>
      ))}
    </dl>
  );
}

function AnswerText({ card, workload }: { card: Scorecard; workload: Workload }) {
  const text = card.advice.find((one) => one.workload === workload)?.text;
  return text === undefined ? <span class="empty">{NO_CHOICE}</span> : <AdviceText text={text} />;
}

/** The recommendation, which is the first sentence, stands out. */
function AdviceText({ text }: { text: string }) {
  const end = text.indexOf(". ") + 1 || text.length;
  return (
    <>
      <strong>{text.slice(0, end)}</strong>
      {text.slice(end)}
    </>
  );
}

const NO_CHOICE = "no option both works and has a figure for every quantity that counts";

interface AdviceProps {
  card: Scorecard;
  chosen: WorkloadChoice;
  /** How many quantities bear on it. */
  shown: number;
  /** Which options are too late for it. */
  late: readonly CardOption[];
}

function WorkloadAdvice({ card, chosen, shown, late }: AdviceProps) {
  const advice = card.advice.find((one) => one.workload === chosen.workload);
  return (
    <>
      <p class="lead">
        {advice === undefined ? (
          `${chosen.title}: nothing is advised, because ${NO_CHOICE}.`
        ) : (
          <AdviceText text={advice.text} />
        )}
      </p>
      <p class="note">
        {advice !== undefined && "✓ marks the choice below, and 2. the runner-up. "}
        {shown} of {card.rows.length} quantities bear on this workload; the others are not shown.
        {late.length > 0 &&
          ` Factors leave out what is too late: ${late.map(({ label }) => label).join(", ")}.`}
      </p>
    </>
  );
}

/** Notes above this length are folded behind their first sentence. */
const NOTE_LENGTH_MAX = 200;

function CardNote({ text }: { text: string }) {
  const end = text.indexOf(". ") + 1;
  if (text.length <= NOTE_LENGTH_MAX || end === 0) return <p class="note card-note">{text}</p>;
  return (
    <details class="note card-note">
      <summary>{text.slice(0, end)}</summary>
      {text.slice(end + 1)}
    </details>
  );
}
