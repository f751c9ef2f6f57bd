import { formatCount, plural } from "../format/number";
import type { WarningReport } from "../generated/report";

const SEVERITIES = ["void", "withheld", "warning"] as const;
const TAKES = {
  void: "excludes ",
  withheld: "excludes the latencies of ",
  warning: "raised by ",
};

/** Everything that makes a result less certain; what takes runs out comes first. */
export function Warnings({ warnings }: { warnings: readonly WarningReport[] }) {
  const ordered = [...warnings].sort((a, b) => rank(a) - rank(b));
  return (
    <section id="warnings" tabIndex={-1} aria-labelledby="warnings-title">
      <h2 id="warnings-title">Warnings</h2>
      {ordered.length === 0 && <p>No warnings: no run came near a limit of the instrument.</p>}
      <ul class="warnings">
        {ordered.map((warning) => (
          <li key={warning.code}>
            <p>
              <span class={`tag tag-${warning.severity}`}>{warning.severity}</span>{" "}
              <code>{warning.code}</code>{" "}
              <span class="note">
                {TAKES[warning.severity]}
                {plural(warning.count, "run")}
              </span>
            </p>
            <p>{warning.message}</p>
            {warning.runs.length > 0 && (
              <details>
                <summary>
                  {warning.runs.length < warning.count
                    ? `${formatCount(warning.runs.length)} of the ${plural(warning.count, "run")}`
                    : plural(warning.count, "run")}
                </summary>
                <ul class="runs">
                  {warning.runs.map((run) => (
                    <li key={run}>{run}</li>
                  ))}
                </ul>
              </details>
            )}
          </li>
        ))}
      </ul>
    </section>
  );
}

function rank(warning: WarningReport): number {
  return SEVERITIES.indexOf(warning.severity);
}
