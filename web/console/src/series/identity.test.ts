import { expect, test } from "vitest";
import { sampleReport } from "../../fixtures/sample-report";
import type { ExperimentReport, Series } from "../generated/report";
import { identify } from "./identity";

const template = sampleReport().experiments[0] as ExperimentReport;

function experimentOf(...keys: string[]): ExperimentReport {
  const series: Series[] = keys.map((key) => {
    const [subject = "", transport = ""] = key.split("/");
    return { key, label: key, subject, transport, origin: originOf(subject), points: [] };
  });
  return { ...template, series };
}

/** Whoever has a year in its name is a study. */
const originOf = (subject: string) => (/-\d{4}$/.test(subject) ? "published" : "measured");

const look = (experiments: ExperimentReport[]) =>
  [...identify(experiments).values()].map((one) => [one.colour, one.symbol, one.dash]);

test("transports differ in colour and marker", () => {
  const looks = look(sampleReport().experiments.slice(1));
  expect(looks).toHaveLength(6);
  expect(new Set(looks.map(([colour]) => colour)).size).toBe(6);
  expect(new Set(looks.map(([, symbol]) => symbol)).size).toBe(6);
});

test("a transport looks the same whatever else is in the report", () => {
  const alone = identify([experimentOf("pushlab/sse", "pushlab/polling")]).get("pushlab/sse");
  const among = identify(sampleReport().experiments).get("pushlab/sse");
  expect(alone?.colour).toBe(among?.colour);
  expect(alone?.symbol).toBe(among?.symbol);
});

test("subjects of several transports differ in dash", () => {
  const looks = look([experimentOf("a/websocket", "b/websocket", "a/sse", "b/sse")]);
  expect(new Set(looks.map(String)).size).toBe(4);
  expect(looks[0]?.[0]).toBe(looks[1]?.[0]);
  expect(looks[0]?.[2]).not.toBe(looks[1]?.[2]);
});

test("subjects of one transport differ in colour", () => {
  const looks = look([experimentOf("a/websocket", "b/websocket", "c/websocket")]);
  expect(new Set(looks.map(([colour]) => colour)).size).toBe(3);
});

test("variants of one subject differ", () => {
  const looks = look([experimentOf("a/websocket/close", "a/websocket/conflate")]);
  expect(new Set(looks.map(String)).size).toBe(2);
});

test("transports without a slot of their own still differ", () => {
  const looks = look([experimentOf("a/carrier-pigeon", "a/smoke", "a/sse")]);
  expect(new Set(looks.map(String)).size).toBe(3);
});

test("what was published has the colour and marker of what was measured, hollow and dashed", () => {
  const identities = identify([
    experimentOf("pushlab/sse", "pushlab/websocket", "tangen-2015/sse", "cometd-2011/sse"),
  ]);
  const measured = identities.get("pushlab/sse");
  const published = identities.get("tangen-2015/sse");
  expect(published).toMatchObject({ colour: measured?.colour, symbol: measured?.symbol });
  expect([measured?.hollow, measured?.dash]).toEqual([false, undefined]);
  expect(published?.hollow).toBe(true);
  expect(published?.dash).toBeDefined();
  expect(identities.get("cometd-2011/sse")?.dash).not.toBe(published?.dash);
});

test("a study does not make the measured series of one subject dashed", () => {
  const identities = identify([experimentOf("tangen-2015/sse", "pushlab/sse", "pushlab/polling")]);
  expect(identities.get("pushlab/sse")?.dash).toBeUndefined();
  expect(identities.get("pushlab/polling")?.dash).toBeUndefined();
});
