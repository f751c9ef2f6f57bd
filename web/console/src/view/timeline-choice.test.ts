import { expect, test } from "vitest";
import { sampleReport } from "../../fixtures/sample-report";
import type { ExperimentReport } from "../generated/report";
import { representativeChoice, resolveChoice, timelineCounts, timelineOf } from "./timeline-choice";

const report = sampleReport();
const broadcast = report.experiments[0] as ExperimentReport;

/** An experiment whose series have timelines at these counts only. */
function withTimelines(counts: Record<string, number[]>): ExperimentReport {
  const timeline = broadcast.series[0]?.points[0]?.timeline ?? null;
  const series = broadcast.series.map((one) => ({
    ...one,
    points: one.points.map((point) => ({
      ...point,
      timeline: counts[one.transport]?.includes(point.clients) ? timeline : null,
    })),
  }));
  return { ...broadcast, series };
}

test("the default is the largest client count that most series share", () => {
  const experiment = withTimelines({
    sse: [50, 300],
    "long-polling": [50, 300, 450],
    polling: [50],
  });
  expect(representativeChoice(experiment)).toEqual({ series: "pushlab/sse", clients: 50 });
});

test("of equally shared counts the largest is taken", () => {
  const experiment = withTimelines({ sse: [50, 300], "long-polling": [50, 300] });
  expect(representativeChoice(experiment)?.clients).toBe(300);
});

test("without any timeline there is no choice", () => {
  expect(representativeChoice(withTimelines({}))).toBeNull();
  expect(resolveChoice(withTimelines({}), { series: "pushlab/sse", clients: 50 })).toBeNull();
});

test("a wanted count that does not exist becomes the nearest of its series", () => {
  const experiment = withTimelines({ sse: [50, 300], "long-polling": [450] });
  const choice = resolveChoice(experiment, { series: "pushlab/sse", clients: 260 });
  expect(choice).toEqual({ series: "pushlab/sse", clients: 300 });
});

test("a wanted series that does not exist becomes the default", () => {
  const choice = resolveChoice(broadcast, { series: "elsewhere/sse", clients: 50 });
  expect(choice).toEqual(representativeChoice(broadcast));
});

test("every choice of the sample has its timeline", () => {
  for (const experiment of report.experiments) {
    for (const series of experiment.series) {
      for (const clients of timelineCounts(series)) {
        expect(timelineOf(experiment, { series: series.key, clients })).not.toBeNull();
      }
    }
  }
});
