import type { Agreement, ExperimentReport } from "../generated/report";
import { Badge, type Kind } from "./badge";

/** What an assertion comes to that nobody wants to hold. */
const KINDS: Record<Agreement, Kind> = {
  confirmed: "raised",
  refuted: "quiet",
  undecided: "undecided",
};

/** What the measurement was to fail at, and whether it does. */
export function Alarms({ experiment }: { experiment: ExperimentReport }) {
  const { alarms } = experiment;
  if (alarms.length === 0) return null;
  return (
    <section aria-label={`Alarms: ${experiment.title}`}>
      <h3>Alarms</h3>
      <ul class="expectations">
        {alarms.map(({ assertion, outcome, detail }) => (
          <li key={assertion}>
            <div>
              <p class="finding">
                <code>{assertion}</code>
              </p>
              <p class="note">{detail}</p>
            </div>
            <dl class="outcomes">
              <div>
                <dt>--fail-if</dt>
                <dd>
                  <Badge kind={Object.hasOwn(KINDS, outcome) ? KINDS[outcome] : "unknown"} />
                </dd>
              </div>
            </dl>
          </li>
        ))}
      </ul>
    </section>
  );
}
