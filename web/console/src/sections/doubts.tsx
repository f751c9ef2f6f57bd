import { formatCount, plural } from "../format/number";
import type { DoubtReport } from "../generated/report";

/** Everything that makes a result less certain; what takes runs out comes first. */
export function Doubts({ doubts }: { doubts: readonly DoubtReport[] }) {
  const ordered = [...doubts].sort((a, b) => rank(a) - rank(b));
  return (
    <section id="doubts" tabIndex={-1} aria-labelledby="doubts-title">
      <h2 id="doubts-title">Doubts</h2>
      {ordered.length === 0 && <p>No doubts: no run came near a limit of the instrument.</p>}
      <ul class="doubts">
        {ordered.map((doubt) => (
          <li key={doubt.code}>
            <p>
              <span class={`tag tag-${doubt.severity}`}>{doubt.severity}</span>{" "}
              <code>{doubt.code}</code>{" "}
              <span class="note">
                {doubt.severity === "void" ? "takes out " : "raised by "}
                {plural(doubt.count, "run")}
              </span>
            </p>
            <p>{doubt.message}</p>
            {doubt.runs.length > 0 && (
              <details>
                <summary>
                  {doubt.runs.length < doubt.count
                    ? `${formatCount(doubt.runs.length)} of the ${plural(doubt.count, "run")}`
                    : plural(doubt.count, "run")}
                </summary>
                <ul class="runs">
                  {doubt.runs.map((run) => (
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

function rank(doubt: DoubtReport): number {
  return doubt.severity === "void" ? 0 : 1;
}
