import { expect, test } from "vitest";
import { DEFAULT_VIEW, LEADERBOARD, parseView, serializeView, type ViewState } from "./view-state";

const FULL: ViewState = {
  at: "warnings",
  focus: "pushlab/long-polling",
  columns: "all",
  published: "hidden",
  unchanged: "shown",
  transport: "long-polling",
  workload: "many-idle",
  timelines: { "tangen-chat": { series: "a&b=c@d/web socket", x: 500 } },
  sorts: {
    "tangen-chat": { column: "cpu", descending: true },
    [LEADERBOARD]: { column: "latency_p99", descending: false },
  },
};

test("a view survives the URL", () => {
  expect(parseView(`#${serializeView(FULL)}`)).toEqual(FULL);
});

test("the default view needs no fragment", () => {
  expect(serializeView(DEFAULT_VIEW)).toBe("");
  expect(parseView("")).toEqual(DEFAULT_VIEW);
});

test("links stay readable", () => {
  const timelines = { chat: { series: "pushlab/sse", x: 50 } };
  expect(serializeView({ ...DEFAULT_VIEW, timelines })).toBe("timeline.chat=pushlab/sse@50");
});

test("what is not understood is left out", () => {
  const fragment =
    "#latency=p99&published=no&unchanged=0&columns=some&transport=&workload=&timeline.a=sse&timeline.b=sse@x&sort.a=-&new=1";
  expect(parseView(fragment)).toEqual(DEFAULT_VIEW);
});

test("a place on the axis need not be whole", () => {
  const timelines = { rate: { series: "pushlab/sse", x: 0.5 } };
  expect(parseView(serializeView({ ...DEFAULT_VIEW, timelines })).timelines).toEqual(timelines);
});
