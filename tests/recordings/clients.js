// Our client library, as the pages use it: over every transport. It must have been built: `npm run build` in web/client.

import { createRequire } from "node:module";
import { connect } from "../../web/client/dist/pushlab.js";

const require = createRequire(new URL("../foreign/package.json", import.meta.url));
const { WebSocket } = require("ws");

const TRANSPORTS = ["websocket", "sse", "http-streaming", "long-polling", "polling"];
/** Nothing happens by itself while a conversation lasts. */
const TIMING = {
  heartbeat: 25_000,
  open: 20_000,
  early: 20_000,
  climb: 600_000,
  poll: 600_000,
  request: 20_000,
};

function client(at, options) {
  const connection = connect(at.base, {
    WebSocket,
    ...options,
    timing: { ...TIMING, ...options.timing },
  });
  const data = [];
  connection.addEventListener("message", (event) => data.push(event.data));
  at.t.after(() => connection.close());
  const until = (state) => at.until(() => connection.state === state, `it is ${state}`);
  return { connection, data, until };
}

/** The library publishes and pings in one segment. */
const IN_ONE_TURN =
  "a publication is delivered behind what is answered in the turn of the event loop that read it; cut, these are two turns";

const each = (name, about, run, cut = undefined) =>
  TRANSPORTS.map((transport) => ({
    name: `client-${transport}${name && `-${name}`}`,
    about,
    by: `web/client over ${transport}`,
    cutMatters: transport === "websocket" ? cut : undefined,
    run: (at) => run(at, transport),
  }));

export const CLIENTS = [
  ...each(
    "",
    "subscribes, publishes and hears it",
    async (at, transport) => {
      const { connection, data, until } = client(at, {
        transport,
        channels: ["a", "b"],
        timing: { poll: 250 },
      });
      await until("open");
      await at.settled();
      for (const one of [{ n: 1 }, "ä'</script>\u2028"]) {
        await connection.publish("a", one);
        await at.until(() => data.length > 0, "the message");
        await at.settled();
      }
      await at.until(() => data.length === 2, "both messages");
      connection.close();
    },
    IN_ONE_TURN,
  ),
  ...each(
    "resume",
    "resumes with the cursor of another connection, and hears of a gap",
    async (at, transport) => {
      const publisher = client(at, { transport: "polling", channels: ["x"] });
      await publisher.until("open");
      for (const n of [1, 2, 3]) await publisher.connection.publish("a", n);
      await at.settled();
      for (const [after, count] of [
        [`${at.epoch}.1`, 2],
        ["other.7", 0],
      ]) {
        const { connection, data, until } = client(at, { transport, channels: ["a"], after });
        await until("open");
        await at.until(() => data.length >= count, "what was missed");
        await at.settled();
        connection.close();
        await at.settled();
      }
      publisher.connection.close();
    },
  ),
  ...each(
    "changes",
    "subscribes, unsubscribes, echoes, and is told why not",
    async (at, transport) => {
      const { connection, until } = client(at, { transport, channels: ["a"] });
      await until("open");
      await at.settled();
      connection.subscribe("b");
      await at.settled();
      await until("open");
      connection.unsubscribe("a");
      await at.settled();
      await until("open");
      await connection.echo({ b: ["ö", null] });
      await connection.publish("b", 1);
      await at.settled();
      await connection.publish("-", 1).catch(() => {});
      connection.close();
    },
    IN_ONE_TURN,
  ),
  ...["sse", "http-streaming"].map((transport) => ({
    name: `client-${transport}-early`,
    about: "asks for an early heartbeat, and gets one",
    by: `web/client over ${transport}`,
    isEarly: true,
    async run(at) {
      const { connection, until } = client(at, { transport, channels: ["a"] });
      await until("open");
      await new Promise((go) => setTimeout(go, 1300));
      await connection.publish("a", 1);
      await at.settled();
      connection.close();
    },
  })),
];
