import { connect as subscribe } from "pushlab-client";
import { WebSocket } from "ws";

const CHANNEL = "demo.auction";

/** Calls as requests: method, path, and what goes into the body. An id keeps its type in the path: `"1"` is none. */
const REQUESTS = new Map(
  Object.entries({
    register: (args) => ["POST", "register", args],
    "log-in": (args) => ["POST", "log-in", args],
    list: () => ["GET", "items"],
    "own-bids": () => ["GET", "own-bids"],
    add: (args) => ["POST", "items", args],
    remove: (args) => ["DELETE", `items/${pathOf(args?.id)}`],
    bid: (args) => {
      const { id, ...body } = Object(args);
      return ["POST", `items/${pathOf(id)}/bids`, body];
    },
  }),
);

function pathOf(value) {
  return encodeURIComponent(String(JSON.stringify(value)));
}

/** Connects; `heard` is called with each change. */
export async function connect(base, transport, heard) {
  const connection = subscribe(base, { channels: [CHANNEL], transport, WebSocket });
  let session = "";
  connection.addEventListener("message", ({ data }) => {
    const { sent_ms, ...change } = data;
    heard(change);
  });
  await new Promise((resolve, reject) => {
    connection.addEventListener("state", ({ state, reason }) => {
      if (state === "open") resolve();
      if (state === "closed") reject(new Error(reason));
    });
  });
  return {
    /** The answer; throws an Error whose `refusal` is what the house said. */
    async call(name, args) {
      const request = REQUESTS.get(name) ?? ((more) => ["POST", pathOf(name), more]);
      const [method, path, body] = request(args);
      const response = await fetch(`${base}/api/demos/auction/${path}`, {
        method,
        headers: { "content-type": "application/json", "auction-session": session },
        body: method === "POST" ? JSON.stringify(body) : undefined,
      });
      const answer = await response.json();
      if (answer.error) throw Object.assign(new Error(answer.message), { refusal: answer });
      session = answer.session ?? session;
      return answer;
    },
    /** Ends it. */
    async close() {
      connection.close();
    },
  };
}
