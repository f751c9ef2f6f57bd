// How a page receives without the client library: each function runs in the page, tells `window.began` when it is open and
// `window.receive` of every frame, and comes back with its cursor after a cut.

/** Prepares a page; the numbers of the messages that come are in `window.received`. */
export function prepare() {
  window.received = [];
  window.cursor = "";
  window.began = (headers) => {
    window.has_begun = true;
    window.coding = headers?.get("content-encoding");
  };
  window.receive = ([kind, ...rest]) => {
    if (kind === "cursor") window.cursor = rest[0];
    if (kind !== "msg") return;
    // An event stream has the cursor as the event's id, and resumes by itself.
    if (rest.length === 3) window.cursor = rest[1];
    window.received.push(rest.at(-1).n);
  };
  /** Does something again and again, with a pause where it fails. */
  window.forever = async (once) => {
    for (;;) {
      await once().catch(() => new Promise((resolve) => setTimeout(resolve, 100)));
    }
  };
}

export const WAYS = {
  "an event stream": () => {
    const source = new EventSource("/sse?channel=news");
    source.onopen = () => window.began();
    source.onmessage = ({ data }) => window.receive(JSON.parse(data));
  },
  "a stream read by fetch": () =>
    window.forever(async () => {
      const { body, headers } = await fetch(`/stream?channel=news&after=${window.cursor}`);
      window.began(headers);
      const reader = body.pipeThrough(new TextDecoderStream()).getReader();
      let text = "";
      for (;;) {
        const { value, done } = await reader.read();
        if (done) return;
        const lines = (text + value).split("\n");
        text = lines.pop();
        for (const line of lines) window.receive(JSON.parse(line));
      }
    }),
  "long polls": () =>
    window.forever(async () => {
      const wait = window.cursor === "" ? 0 : 20;
      const reply = await fetch(`/poll?channel=news&wait=${wait}&after=${window.cursor}`);
      for (const frame of await reply.json()) window.receive(frame);
      window.began(reply.headers);
    }),
  "a WebSocket": () =>
    window.forever(
      () =>
        new Promise((_, fail) => {
          const address = `${location.origin.replace("http", "ws")}/ws?channel=news&after=${window.cursor}`;
          const socket = new WebSocket(address);
          socket.onopen = () => window.began();
          socket.onmessage = ({ data }) => window.receive(JSON.parse(data));
          socket.onclose = fail;
        }),
    ),
};

/** Begins to receive in a visitor's page, and waits until the way is open. */
export async function open({ page }, way, until) {
  await page.evaluate(prepare);
  // A server that ends before the page is an error to whoever reads.
  await page.evaluate(`void (async () => (${WAYS[way]})())().catch(() => {})`);
  await until(() => page.evaluate(() => window.has_begun === true), `${way} is open`);
}
