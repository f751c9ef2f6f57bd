import { Glyph } from "../series/glyph";
import type { ViewState } from "../view/view-state";
import type { ExperimentProps } from "./experiment-section";

/** Names the lines of all charts below; a name is a button that makes its line stand out. */
export function Legend({ experiment, identities, view, update }: ExperimentProps) {
  const single = experiment.series.some((one) => one.points.some((point) => point.runs === 1));
  return (
    <div class="legend">
      <ul aria-label="Series; press one to make it stand out">
        {experiment.series.map((one) => (
          <li key={one.key}>
            <button
              type="button"
              aria-pressed={view.focus === one.key}
              onClick={() => update({ focus: view.focus === one.key ? null : one.key })}
            >
              <Glyph identity={identities.get(one.key)} />
              {one.label}
            </button>
          </li>
        ))}
      </ul>
      <LatencyToggle name={experiment.name} latency={view.latency} update={update} />
      <p class="note">
        Shaded: 95 % interval over the repeats.
        {single && " Hollow marker: one run, no interval."}
      </p>
    </div>
  );
}

interface LatencyToggleProps {
  name: string;
  latency: ViewState["latency"];
  update: ExperimentProps["update"];
}

function LatencyToggle({ name, latency, update }: LatencyToggleProps) {
  const options: [ViewState["latency"], string][] = [
    ["median", "median"],
    ["p99", "99th percentile"],
  ];
  return (
    <fieldset class="toggle">
      <legend>Delivery latency</legend>
      {options.map(([value, text]) => (
        <label key={value}>
          <input
            type="radio"
            name={`${name}-latency`}
            checked={latency === value}
            onChange={() => update({ latency: value })}
          />
          {text}
        </label>
      ))}
    </fieldset>
  );
}
