import { expect, test } from "vitest";
import { DEFAULT_VIEW, parseView, serializeView, type ViewState } from "./view-state";

const FULL: ViewState = {
  at: "doubts",
  latency: "p99",
  focus: "pushlab/long-polling",
  columns: "all",
  timelines: { "tangen-chat": { series: "a&b=c@d/web socket", clients: 500 } },
  sorts: { "tangen-chat": { column: "cpu", descending: true } },
};

test("a view survives the URL", () => {
  expect(parseView(`#${serializeView(FULL)}`)).toEqual(FULL);
});

test("the default view needs no fragment", () => {
  expect(serializeView(DEFAULT_VIEW)).toBe("");
  expect(parseView("")).toEqual(DEFAULT_VIEW);
});

test("links stay readable", () => {
  const timelines = { chat: { series: "pushlab/sse", clients: 50 } };
  expect(serializeView({ ...DEFAULT_VIEW, timelines })).toBe("timeline.chat=pushlab/sse@50");
});

test("what is not understood is left out", () => {
  const fragment = "#latency=p50&columns=some&timeline.a=sse&timeline.b=sse@x&sort.a=-&new=1";
  expect(parseView(fragment)).toEqual(DEFAULT_VIEW);
});
