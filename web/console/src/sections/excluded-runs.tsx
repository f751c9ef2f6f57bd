import { formatCount, plural } from "../format/number";
import { placeText } from "../format/place";
import type { Axis } from "../generated/report";
import { excludedRuns } from "./excluded-reasons";
import type { Row } from "./results-columns";

/** Runs that do not count, with their reasons: a figure may not hide what it leaves out. */
export function ExcludedRuns({ rows, axis }: { rows: readonly Row[]; axis: Axis }) {
  const excluded = excludedRuns(rows);
  if (excluded.length === 0) {
    return <p class="note excluded">Every run counts: none failed, none was void.</p>;
  }
  const total = excluded.reduce((sum, one) => sum + one.count, 0);
  return (
    <details class="excluded" open={excluded.length <= 8}>
      <summary>
        {total === 0
          ? "Missing figures"
          : `${plural(total, "run is", "runs are")} missing from some or all of these figures`}
      </summary>
      <ul>
        {excluded.map((one) => (
          <li key={`${one.label} ${one.x} ${one.kind} ${one.reason}`}>
            <span class="cell">
              {one.label}, {placeText(axis, one.x)}
            </span>
            <span class="tag tag-void">
              {one.count > 0 && `${formatCount(one.count)} `}
              {one.kind}
            </span>
            <span class="reason">{one.reason}</span>
          </li>
        ))}
      </ul>
    </details>
  );
}
