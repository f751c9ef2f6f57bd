import { expect, test } from "vitest";
import { sampleReport } from "../../fixtures/sample-report";
import type { ExperimentReport } from "../generated/report";
import {
  publishedSecondsOf,
  representativeChoice,
  resolveChoice,
  timelineOf,
  timelinePlaces,
} from "./timeline-choice";

const report = sampleReport();
const broadcast = report.experiments[0] as ExperimentReport;

/** An experiment whose series have timelines at these counts only. */
function withTimelines(counts: Record<string, number[]>): ExperimentReport {
  const timeline = broadcast.series[0]?.points[0]?.timeline ?? null;
  const measured = broadcast.series.filter((one) => one.origin === "measured");
  const series = measured.map((one) => ({
    ...one,
    points: one.points.map((point) => ({
      ...point,
      timeline: counts[one.transport]?.includes(point.x) ? timeline : null,
    })),
  }));
  return { ...broadcast, series };
}

test("the default is the largest place that most series share", () => {
  const experiment = withTimelines({
    sse: [50, 300],
    "long-polling": [50, 300, 450],
    websocket: [50],
  });
  expect(representativeChoice(experiment)).toEqual({ series: "pushlab/websocket", x: 50 });
});

test("of equally shared places the largest is taken", () => {
  const experiment = withTimelines({ sse: [50, 300], "long-polling": [50, 300] });
  expect(representativeChoice(experiment)?.x).toBe(300);
});

test("without any timeline there is no choice", () => {
  expect(representativeChoice(withTimelines({}))).toBeNull();
  expect(resolveChoice(withTimelines({}), { series: "pushlab/sse", x: 50 })).toBeNull();
});

test("a wanted place that does not exist becomes the nearest of its series", () => {
  const experiment = withTimelines({ sse: [50, 300], "long-polling": [450] });
  const choice = resolveChoice(experiment, { series: "pushlab/sse", x: 260 });
  expect(choice).toEqual({ series: "pushlab/sse", x: 300 });
});

test("a wanted series that does not exist becomes the default", () => {
  const choice = resolveChoice(broadcast, { series: "elsewhere/sse", x: 50 });
  expect(choice).toEqual(representativeChoice(broadcast));
});

test("every choice of the sample has its timeline", () => {
  for (const experiment of report.experiments) {
    for (const series of experiment.series) {
      for (const x of timelinePlaces(series)) {
        expect(timelineOf(experiment, { series: series.key, x })).not.toBeNull();
      }
    }
  }
});

test("a study's seconds are those of the same cell, or of the same server and transport", () => {
  const seconds = { published: [120], server_received: [], server_sent: [], latency_own_mean: [] };
  const [first] = broadcast.series.filter((one) => one.origin === "measured");
  if (first === undefined) throw new Error("the sample has measured series");
  const printed = (key: string) => ({
    ...first,
    ...{ key, origin: "published" as const },
    points: first.points.map((point) => ({ ...point, published_seconds: seconds })),
  });
  const beside = (key: string) => ({ ...broadcast, series: [...broadcast.series, printed(key)] });
  const choice = { series: first.key, x: first.points[0]?.x ?? 0 };
  expect(publishedSecondsOf(broadcast, choice)).toBeNull();
  expect(publishedSecondsOf(beside(`${first.key}/published`), choice)).toEqual(seconds);
  expect(publishedSecondsOf(beside("pushlab/websocket//other/published"), choice)).toEqual(seconds);
  const [, second] = broadcast.series.filter((one) => one.origin === "measured");
  expect(publishedSecondsOf(beside(`${second?.key}/published`), choice)).toBeNull();
});
