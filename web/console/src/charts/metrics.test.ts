import { expect, test } from "vitest";
import { sampleReport } from "../../fixtures/sample-report";
import { singleReport } from "../../fixtures/sample-single";
import type { ExperimentReport, Point } from "../generated/report";
import { dotGroups, isSinglePoint, percentOn } from "./dot-rows";
import { chartsOf, estimateOf, indexMetrics, metricOf } from "./metrics";
import { dotsOf } from "./series-marks";
import { valueScale } from "./value-scale";

const report = sampleReport();
const metrics = indexMetrics(report.metrics);
const broadcast = report.experiments[0] as ExperimentReport;
const [load, idle] = singleReport().experiments as [ExperimentReport, ExperimentReport];

test("an unknown metric is shown under its name", () => {
  expect(metricOf(metrics, "unheard_of")).toMatchObject({
    ...{ title: "unheard_of", unit: "", scale: "linear", note: "" },
  });
});

test("response time has bands, CPU a border, and nothing else a backdrop", () => {
  const backdrops = ["response_median", "cpu", "latency_median", "cpu_idle"].map(
    (name) => metricOf(metrics, name).backdrop,
  );
  expect(backdrops).toEqual(["bands", "full-core", undefined, undefined]);
});

test("what JavaScript inherits is no figure", () => {
  const point = { figures: {} } as Point;
  expect(estimateOf(point, "constructor")).toBeNull();
  expect(estimateOf(point, "__proto__")).toBeNull();
});

test("a chart without any figure is left out", () => {
  const asked = { ...broadcast, charts: ["never_measured", "cpu"] };
  expect(chartsOf(asked, metrics).map((metric) => metric.name)).toEqual(["cpu"]);
});

test("a value scale holds every value and its backdrop", () => {
  const response = valueScale(metricOf(metrics, "response_median"), [0.4, 90], 5);
  expect(response.domain).toEqual([0.2, 1000]);
  expect(valueScale(metricOf(metrics, "cpu"), [20], 5).domain[1]).toBeGreaterThan(100);
  expect(percentOn(response)(0.0001)).toBe(0);
});

test("one place, or two, have rows instead of lines", () => {
  expect([broadcast, load, idle].map((one) => isSinglePoint(one.series))).toEqual([
    ...[false, true, true],
  ]);
});

test("rows stand by transport, measured first, and studies only where they have a figure", () => {
  const rows = (name: string) => dotGroups(load.series, metricOf(metrics, name))[0]?.rows ?? [];
  expect(
    rows("latency_median")
      .slice(0, 6)
      .map((row) => row.series.label),
  ).toEqual([
    "websocket",
    "websocket · conflate",
    "websocket · socketio · published",
    "websocket · signalr · published",
    "websocket · sockjs · published",
    "sse",
  ]);
  expect(rows("memory").every((row) => row.series.origin === "measured")).toBe(true);
});

test("two places make two groups", () => {
  expect(dotGroups(idle.series, metricOf(metrics, "memory")).map((group) => group.x)).toEqual([
    ...[1000, 4500],
  ]);
});

test("a measured line has a gap where a figure is missing, a published one goes on", () => {
  const [first] = broadcast.series;
  const point = first?.points[1];
  if (first === undefined || point === undefined) throw new Error("no sample");
  const points = first.points.map((one) => (one === point ? { ...one, figures: {} } : one));
  expect(dotsOf({ ...first, points }, "cpu").filter((dot) => Number.isNaN(dot.y))).toHaveLength(1);
  const published = dotsOf({ ...first, points, origin: "published" }, "cpu");
  expect(published).toHaveLength(first.points.length - 1);
});
