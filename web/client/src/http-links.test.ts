import { expect, test } from "vitest";
import { openEventStream, openLines } from "./http-links.ts";
import type { LinkContext, LinkEnd } from "./link.ts";
import { TIMING } from "./timing.ts";

const LINES = "application/x-ndjson";
const EVENTS = "text/event-stream";

/** Opens a stream that shows these pieces at once and then nothing; gives its end when it comes. */
function stream(type: string, pieces: string[]): Promise<LinkEnd> {
  return new Promise((ended) => {
    const body = new ReadableStream({
      async start(controller) {
        for (const piece of pieces) {
          controller.enqueue(new TextEncoder().encode(piece));
          await new Promise((resolve) => setTimeout(resolve, 1));
        }
      },
    });
    const context: LinkContext = {
      fetch: async () => new Response(body, { headers: { "content-type": type } }),
      WebSocket: undefined,
      timing: { ...TIMING, early: 200 },
      address: (path) => `http://host/${path}`,
      heard: () => {},
      frame: () => {},
      ended,
      ponged: () => {},
      tokens: undefined,
    };
    if (type === LINES) openLines(context);
    else openEventStream(context);
  });
}

test.each([
  [LINES, ['["cursor","e.1"]\n'], '["cursor","e.1"]\n'],
  // A greeting in pieces, and with what was missed behind it.
  [LINES, ['["cur', 'sor","e.1"]\n', '["msg","a","e.2",1]\n'], '["cursor","e.2"]\n'],
  [EVENTS, ["id: e.1\n\n"], "id: e.1\n\n"],
])("over %s %j alone is held back, but not with a heartbeat close behind", async (...row) => {
  const [type, greeting, heartbeat] = row;
  let hasEnded = false;
  const whole = stream(type, [...greeting, heartbeat]);
  whole.then(() => {
    hasEnded = true;
  });
  expect(await stream(type, greeting)).toMatchObject({ isHeldBack: true });
  // It was opened first: its time is over too.
  expect(hasEnded).toBe(false);
});
