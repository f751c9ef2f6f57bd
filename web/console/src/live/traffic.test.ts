import { expect, test } from "vitest";
import { addMessage, addRequests, NO_TRAFFIC, type TimedResource } from "./traffic";

const ORIGIN = "http://localhost:8080";

function resource(path: string, startTime: number, transferSize = 300): TimedResource {
  return { name: new URL(path, ORIGIN).href, startTime, transferSize };
}

test("only finished requests of the connection count, and those since it began", () => {
  const resources = [
    resource("/poll?channel=a&after=e.1", 99),
    resource("/poll?channel=a&after=e.2", 100),
    resource("/echo", 150, 320),
    resource("/publish?channel=a", 160),
    resource("/api/demos/chat/say", 165, 100),
    resource("/api/demos/time", 168),
    resource("/api/results", 170),
    resource("/assets/console.js", 180),
    resource("http://elsewhere.example/poll", 190),
  ];
  expect(addRequests(NO_TRAFFIC, resources, ORIGIN, 100)).toEqual({
    ...NO_TRAFFIC,
    requests: 4,
    requestBytes: 1020,
  });
});

test("a message counts by the bytes of its JSON", () => {
  const once = addMessage(NO_TRAFFIC, { text: "é" });
  expect(once).toEqual({ ...NO_TRAFFIC, messages: 1, messageBytes: 13 });
  expect(addMessage(once, 1)).toEqual({ ...NO_TRAFFIC, messages: 2, messageBytes: 14 });
  expect(NO_TRAFFIC.messages).toBe(0);
});
