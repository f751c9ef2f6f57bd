import { expect, test } from "vitest";
import { guarded, token } from "./access.ts";
import { type File, runPage } from "./browser.ts";
import { bundles } from "./bundles.ts";
import { Server } from "./server.ts";

/** Runs in the page. Each transport connects to another origin, publishes, echoes and receives. */
async function everyTransport(url: string) {
  const results: Record<string, unknown> = {};
  for (const transport of ["websocket", "sse", "http-streaming", "long-polling", "polling"]) {
    const connection = window.Pushlab.connect(url, { channels: [transport], transport });
    const data: unknown[] = [];
    connection.addEventListener("message", (event: CustomEvent) => {
      data.push((event as unknown as { data: unknown }).data);
    });
    await new Promise<void>((resolve) => {
      connection.addEventListener("state", () => connection.state === "open" && resolve());
    });
    await connection.publish(transport, { text: "ä😀" });
    const echo = await connection.echo([1]);
    while (data.length === 0) await new Promise((resolve) => setTimeout(resolve, 5));
    const refusal = await connection
      .publish("-", 1)
      .catch((error: Error & { code: string }) => error.code);
    connection.close();
    results[transport] = { data, echo, refusal };
  }
  return results;
}

/** Runs in the page. Each transport takes a token from another origin, then one that is good, and loses a channel. */
async function withTokens({ url, lives }: { url: string; lives: Record<string, number> }) {
  const results: Record<string, unknown> = {};
  for (const [transport, life] of Object.entries(lives)) {
    let calls = 0;
    const connection = window.Pushlab.connect(url, {
      channels: ["ada:a", "bob:a"],
      transport,
      getToken: async () => (await fetch(`/token/${calls++ ? 600 : life}`)).text(),
    });
    const data: unknown[] = [];
    const refused: string[] = [];
    const errors: string[] = [];
    let lives = 0;
    connection.addEventListener("message", (event: { data: unknown }) => data.push(event.data));
    connection.addEventListener("refused", (event: { channel: string }) => {
      refused.push(event.channel);
    });
    connection.addEventListener("error", (event: { text: string }) => errors.push(event.text));
    connection.addEventListener("state", (event: { state: string }) => {
      if (event.state === "open") lives++;
    });
    const until = async (condition: () => unknown) => {
      while (!condition()) await new Promise((resolve) => setTimeout(resolve, 5));
    };
    await until(() => calls === 2 && connection.state === "open" && refused.length > 0);
    await connection.publish("ada:a", transport);
    await until(() => data.length > 0);
    connection.close();
    results[transport] = { data, refused, errors, lives };
  }
  return results;
}

/** Runs in the page. Two frames share a connection; the one that leads is taken away. */
async function twoFrames(url: string) {
  const open = () => {
    const frame = document.body.appendChild(document.createElement("iframe"));
    frame.src = `/tab?${url}`;
    return frame;
  };
  const until = async (condition: () => unknown) => {
    while (!condition()) await new Promise((resolve) => setTimeout(resolve, 5));
  };
  const tab = (frame: HTMLIFrameElement) => frame.contentWindow as unknown as Window & Tab;
  const first = open();
  await until(() => tab(first).shared?.state === "open");
  const second = open();
  await until(() => tab(second).shared?.state === "open" && tab(second).shared.cursor);
  const leads = [tab(first).shared.isLeader, tab(second).shared.isLeader];
  await tab(second).shared.publish("a", 1);
  await until(() => tab(first).data.length === 1 && tab(second).data.length === 1);
  const before = await (await fetch(`${url}/stats`)).json();
  first.remove();
  await tab(second).shared.publish("a", 2);
  await until(() => tab(second).data.length === 2);
  await until(() => tab(second).shared.isLeader);
  return { leads, data: tab(second).data, sockets: before.connections.websocket };
}

interface Tab {
  // biome-ignore lint/suspicious/noExplicitAny: it comes from a module of the page.
  shared: any;
  data: unknown[];
}

declare global {
  interface Window {
    // biome-ignore lint/suspicious/noExplicitAny: the global that the script tag makes.
    Pushlab: any;
  }
}

/** A page that runs a function of this file and reports what it gives, or why it failed. */
function page<T>(work: (what: T) => Promise<unknown>, what: T): string {
  return `<!doctype html><title>Test</title><script src="/pushlab.js"></script><script>
    const report = (value) => fetch("/", { method: "POST", body: JSON.stringify(value) });
    (${work})(${JSON.stringify(what)}).then(report, (error) => report({ failed: String(error) }));
  </script>`;
}

test("in Chromium, from another origin, by a script tag", { timeout: 90_000 }, async () => {
  const server = await Server.start();
  const script = (await bundles()).get("pushlab.iife.js") ?? "";
  const files = new Map([
    ["/", page(everyTransport, server.base)],
    ["/pushlab.js", script],
  ]);
  const one = { data: [{ text: "ä😀" }], echo: [1], refusal: "bad-channel" };
  expect(await runPage(files)).toEqual({
    websocket: one,
    sse: one,
    "http-streaming": one,
    "long-polling": one,
    polling: one,
  });
});

test("in Chromium, from another origin, with tokens", { timeout: 90_000 }, async () => {
  const server = await guarded(4);
  // The WebSocket renews one that is good; the others come with one that is not.
  const lives = {
    websocket: 5,
    sse: -10,
    "http-streaming": -10,
    "long-polling": -10,
    polling: -10,
  };
  const files = new Map<string, File>([
    ["/", page(withTokens, { url: server.base, lives })],
    ["/pushlab.js", (await bundles()).get("pushlab.iife.js") ?? ""],
    ...[5, -10, 600].map((life): [string, File] => [`/token/${life}`, () => token("ada", life)]),
  ]);
  const one = (name: string) => ({ data: [name], refused: ["bob:a"], errors: [], lives: 1 });
  const names = Object.keys(lives);
  expect(await runPage(files)).toEqual(Object.fromEntries(names.map((name) => [name, one(name)])));
});

test("in Chromium, frames of one origin share a connection", { timeout: 90_000 }, async () => {
  const server = await Server.start();
  const tab = `<!doctype html><script type="module">
    import { connectShared } from "/shared.js";
    window.data = [];
    window.shared = connectShared(location.search.slice(1), { channels: ["a"] });
    window.shared.addEventListener("message", ({ data }) => window.data.push(data));
  </script>`;
  const files = new Map([...(await bundles())].map(([name, code]) => [`/${name}`, code]));
  files.set("/", `<!doctype html><body>${page(twoFrames, server.base)}`).set("/tab", tab);
  expect(await runPage(files)).toEqual({ leads: [true, false], data: [1, 2], sockets: 1 });
});
