import { useMemo, useState } from "preact/hooks";
import { TimelineChart } from "../charts/timeline-chart";
import { timelinePanels } from "../charts/timeline-panels";
import { formatExact } from "../format/number";
import { axisHeading, placeText } from "../format/place";
import type { ExperimentReport } from "../generated/report";
import {
  publishedSecondsOf,
  resolveChoice,
  timelineOf,
  timelinePlaces,
  timelineSeries,
} from "../view/timeline-choice";
import type { UpdateView } from "../view/use-view";
import type { TimelineChoice, ViewState } from "../view/view-state";

interface TimelineSectionProps {
  experiment: ExperimentReport;
  view: ViewState;
  update: UpdateView;
}

/** What happened within one run: of a chosen series and client count, the median run. */
export function TimelineSection({ experiment, view, update }: TimelineSectionProps) {
  const [cursor, setCursor] = useState<number | null>(null);
  const wanted = view.timelines[experiment.name];
  const choice = useMemo(() => resolveChoice(experiment, wanted), [experiment, wanted]);
  const timeline = choice === null ? null : timelineOf(experiment, choice);
  const study = choice === null ? null : publishedSecondsOf(experiment, choice);
  const panels = useMemo(
    () => (timeline === null ? [] : timelinePanels(timeline, study)),
    [timeline, study],
  );

  const choose = (change: Partial<TimelineChoice>) => {
    if (choice === null) return;
    setCursor(null);
    update({ timelines: { ...view.timelines, [experiment.name]: { ...choice, ...change } } });
  };

  if (choice === null || timeline === null) return null;
  const series = timelineSeries(experiment);
  const selected = series.find((one) => one.key === choice.series);
  return (
    <section aria-label={`Over time: ${experiment.title}`}>
      <h3>
        Over time: {selected?.label}, {placeText(experiment.axis, choice.x)}
      </h3>
      <p class="note">
        One run, the median one by response time. Where two lines part, something waits or is lost.
        {study !== null &&
          " Dotted: what the study gives, the mean of its runs, from the beginning of the load."}
        {timeline.phases.length > 0 &&
          ` Shaded, from left to right: ${timeline.phases.map((phase) => phase.name).join(", ")}.`}
      </p>
      <div class="controls">
        <label>
          Series
          <select
            value={choice.series}
            onChange={(event) => choose({ series: event.currentTarget.value })}
          >
            {series.map((one) => (
              <option key={one.key} value={one.key}>
                {one.label}
              </option>
            ))}
          </select>
        </label>
        <label>
          {axisHeading(experiment.axis)}
          <select
            value={choice.x}
            onChange={(event) => choose({ x: Number(event.currentTarget.value) })}
          >
            {(selected === undefined ? [] : timelinePlaces(selected)).map((x) => (
              <option key={x} value={x}>
                {formatExact(x)}
              </option>
            ))}
          </select>
        </label>
      </div>
      <div class="charts">
        {panels.map((panel) => (
          <TimelineChart
            key={panel.id}
            panel={panel}
            timeline={timeline}
            cursor={cursor}
            onCursor={setCursor}
          />
        ))}
      </div>
    </section>
  );
}
