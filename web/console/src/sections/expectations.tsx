import type { Expectation, ExperimentReport } from "../generated/report";
import { Badge, Tally } from "./badge";

/** What the study found, and whether this measurement agrees. */
export function Expectations({ experiment }: { experiment: ExperimentReport }) {
  const { expectations, study } = experiment;
  if (expectations.length === 0) return null;
  const title = study == null ? "What was expected" : "What the study found";
  return (
    <section aria-label={`${title}: ${experiment.title}`}>
      <h3>{title}</h3>
      <Tally
        kinds={["confirmed", "refuted", "undecided"]}
        of={expectations.map((one) => one.outcome)}
      />
      <ul class="expectations">
        {expectations.map((one) => (
          <ExpectationItem key={one.assertion} expectation={one} />
        ))}
      </ul>
    </section>
  );
}

function ExpectationItem({ expectation }: { expectation: Expectation }) {
  const { assertion, finding, outcome, published, detail } = expectation;
  return (
    <li>
      <div>
        {finding !== "" && <p class="finding">{finding}</p>}
        <p class={finding === "" ? "finding" : "note"}>
          <code>{assertion}</code>
        </p>
        {detail !== "" && <p class="note">{detail}</p>}
      </div>
      <dl class="outcomes">
        <div>
          <dt>measured here</dt>
          <dd>
            <Badge kind={outcome} />
          </dd>
        </div>
        {published != null && (
          <div>
            <dt>published numbers</dt>
            <dd>
              <Badge kind={published} />
            </dd>
          </div>
        )}
      </dl>
    </li>
  );
}
