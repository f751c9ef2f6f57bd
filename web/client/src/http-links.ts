import { readReply } from "./frames.ts";
import { ask, readBody, readText } from "./http.ts";
import { endOf, type Link, type LinkContext } from "./link.ts";
import { EventStreamDecoder, LineDecoder, type StreamDecoder } from "./stream-decoders.ts";

/** Polls whose reply is longer, in UTF-16 units, have left something behind: the next follows at once. */
const LONG_REPLY = 2 ** 16;

/** Runs until it is closed or fails; whatever it throws is the link's end. */
function run(context: LinkContext, work: (signal: AbortSignal) => Promise<void>): Link {
  const controller = new AbortController();
  const { signal } = controller;
  // Nothing is told before the opener has returned, even by a `fetch` that throws at once.
  Promise.resolve()
    .then(() => work(signal))
    .then(
      () => ({ ...endOf(undefined), reason: "the stream ended" }),
      (error) => endOf(error),
    )
    .then((end) => {
      if (signal.aborted) return;
      controller.abort();
      context.ended(end);
    });
  return { close: () => controller.abort() };
}

function openStream(
  context: LinkContext,
  path: string,
  type: string,
  decoder: StreamDecoder,
): Link {
  return run(context, async (signal) => {
    const response = await ask(context, context.address(path), type, { signal });
    await readBody(response, (text) => {
      if (signal.aborted) return;
      context.heard();
      for (const frame of decoder.push(text)) if (!signal.aborted) context.frame(frame);
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

/** Long polls, or short ones at an interval. The first is never held, so that it shows at once whether polls get through. */
export function openPolls(context: LinkContext, isLong: boolean): Link {
  const { heartbeat, poll } = context.timing;
  return run(context, async (signal) => {
    for (let wait = 0; ; wait = isLong ? heartbeat / 1000 : 0) {
      const address = context.address("poll", { wait: `${wait}` });
      const text = await readText(await ask(context, address, "application/json", { signal }));
      const frames = readReply(text);
      if (!signal.aborted) context.heard();
      for (const frame of frames) if (!signal.aborted) context.frame(frame);
      if (!isLong && text.length < LONG_REPLY) await sleep(poll, signal);
      if (signal.aborted) return;
    }
  });
}

function sleep(time: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, time);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      resolve();
    });
  });
}
