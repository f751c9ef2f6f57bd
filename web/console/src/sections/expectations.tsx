import { plural } from "../format/number";
import type { Expectation, ExperimentReport, Judged } from "../generated/report";
import { Badge, Tally } from "./badge";

/** A study may say a hundred things: more than so many would hide the charts. */
const LISTED_MAX = 12;

/** What was expected, or what the study found, and whose figures agree. */
export function Expectations({ experiment }: { experiment: ExperimentReport }) {
  const { expectations, study, findings_elsewhere: elsewhere = 0 } = experiment;
  if (expectations.length === 0 && elsewhere === 0) return null;
  const title = study == null ? "What was expected" : "What the study found";
  const measured = expectations
    .flatMap(({ judged }) => judged)
    .filter(({ origin }) => origin === "measured");
  const list = (
    <ul class="expectations">
      {expectations.map((one) => (
        <ExpectationItem key={one.assertion} expectation={one} />
      ))}
    </ul>
  );
  return (
    <section aria-label={`${title}: ${experiment.title}`}>
      <h3>{title}</h3>
      <Tally
        kinds={["confirmed", "refuted", "undecided"]}
        of={measured.map(({ outcome }) => outcome)}
      />
      {expectations.length > LISTED_MAX ? (
        <details>
          <summary>{`All ${expectations.length} statements, and who agrees`}</summary>
          {list}
        </details>
      ) : (
        expectations.length > 0 && list
      )}
      {elsewhere > 0 && (
        <p class="note">
          {`${plural(elsewhere, "statement")} of the study ${elsewhere === 1 ? "is" : "are"} about series that are not among these results.`}
        </p>
      )}
    </section>
  );
}

function ExpectationItem({ expectation }: { expectation: Expectation }) {
  const { assertion, finding, source = "", judged } = expectation;
  return (
    <li>
      <div>
        {finding !== "" && <p class="finding">{finding}</p>}
        {source !== "" && <p class="note">{source}</p>}
        <p class={finding === "" ? "finding" : "note"}>
          <code>{assertion}</code>
        </p>
      </div>
      <dl class="outcomes">
        {judged.map((one) => (
          <div key={whose(one)}>
            <dt>{whose(one)}</dt>
            <dd>
              <Badge kind={one.outcome} />
            </dd>
            <dd class="note">{`${one.detail}${LEANINGS[one.leaning ?? "undecided"]}`}</dd>
          </div>
        ))}
      </dl>
    </li>
  );
}

/** What the means say where their intervals leave it open. */
const LEANINGS = {
  confirmed: "; the means alone agree",
  refuted: "; the means alone contradict it",
  undecided: "",
};

/** By whose figures it was judged. */
function whose({ subject, origin }: Judged): string {
  if (origin === "published") return subject === "" ? "published" : `${subject}, published`;
  return subject === "" ? "measured here" : subject;
}
