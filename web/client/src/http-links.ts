import { readReply } from "./frames.ts";
import { ask, readBody, readText } from "./http.ts";
import { endOf, type Link, type LinkContext, type LinkEnd } from "./link.ts";
import { EventStreamDecoder, LineDecoder, type StreamDecoder } from "./stream-decoders.ts";
import { startDeadline, wait } from "./timing.ts";

/** Polls whose reply is longer, in UTF-16 units, have left something behind: the next follows at once. */
const LONG_REPLY = 2 ** 16;

/** Where queued messages take the place of a heartbeat: what comes later than this behind the first bytes was not held
 * back with them. */
const EARLIEST = 500;

/** Runs until it is closed or fails; whatever it throws, or gives to `end`, is the link's end. */
export function run(
  context: LinkContext,
  work: (signal: AbortSignal, end: (end: LinkEnd) => void) => Promise<void>,
): Link {
  const controller = new AbortController();
  const { signal } = controller;
  const end = (end: LinkEnd) => {
    if (signal.aborted) return;
    controller.abort();
    context.ended(end);
  };
  // Nothing is told before the opener has returned, even by a `fetch` that throws at once.
  Promise.resolve()
    .then(() => work(signal, end))
    .then(
      () => end(endOf(undefined, "the stream ended")),
      (error) => end(endOf(error)),
    );
  return { close: () => controller.abort() };
}

function openStream(
  context: LinkContext,
  path: string,
  type: string,
  decoder: StreamDecoder,
): Link {
  return run(context, async (signal, end) => {
    const response = await ask(context, context.address(path, { early: "1", v: "2" }), type, {
      signal,
    });
    let startedAt: number | undefined;
    // Greeting and heartbeat are two, however close behind each other they come.
    let cursors = 0;
    await readBody(response, (text) => {
      if (signal.aborted) return;
      context.heard();
      const now = performance.now();
      if (startedAt === undefined) {
        startedAt = now;
        const stop = startDeadline(context.timing.early, () => {
          if (cursors < 2) end({ ...endOf(undefined, "held back"), isHeldBack: true });
        });
        signal.addEventListener("abort", stop);
      } else if (now > startedAt + EARLIEST) cursors = 2;
      for (const frame of decoder.push(text)) {
        if (frame[0] === "cursor") cursors++;
        if (!signal.aborted) context.frame(frame);
      }
    });
  });
}

/**
 * Server-Sent Events, over `fetch`: an `EventSource` hides what a refusal says and the heartbeats, which are events
 * without data, so that a dead stream could not be found, and it reconnects at a pace of its own.
 */
export function openEventStream(context: LinkContext): Link {
  return openStream(context, "sse", "text/event-stream", new EventStreamDecoder());
}

/** HTTP streaming, newline-delimited JSON. */
export function openLines(context: LinkContext): Link {
  return openStream(context, "stream", "application/x-ndjson", new LineDecoder());
}

/**
 * Long polls, held for so many milliseconds, or with 0 short ones at an interval. The first is never held, so that it
 * shows at once whether polls get through.
 */
export function openPolls(context: LinkContext, held: number): Link {
  const { poll } = context.timing;
  return run(context, async (signal) => {
    for (let hold = 0; !signal.aborted; hold = held / 1000) {
      const address = context.address("poll", { wait: `${hold}`, v: "2" });
      const text = await readText(await ask(context, address, "application/json", { signal }));
      const frames = readReply(text);
      if (!signal.aborted) context.heard();
      for (const frame of frames) if (!signal.aborted) context.frame(frame);
      if (frames[0]?.[0] === "reconnect") return;
      if (signal.aborted) return;
      if (!held && text.length < LONG_REPLY) await wait(poll, signal);
    }
  });
}
