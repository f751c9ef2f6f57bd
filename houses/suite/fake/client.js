import { once } from "node:events";
import net from "node:net";
import { createInterface } from "node:readline";

/** Connects; `heard` is called with each change. */
export async function connect(base, _transport, heard) {
  const socket = net.connect(new URL(base).port, "127.0.0.1");
  await once(socket, "connect");
  socket.on("error", () => {});
  const ended = once(socket, "close");
  const waiting = new Map();
  let calls = 0;
  // The kernel connects before the server knows of it, which tells changes to those alone whom it knows.
  let welcome;
  const welcomed = new Promise((resolve) => {
    welcome = resolve;
  });
  const lines = createInterface({ input: socket });
  // It passes errors of the socket on.
  lines.on("error", () => {});
  lines.on("line", (line) => {
    const [kind, ...rest] = JSON.parse(line);
    if (kind === "welcome") return welcome();
    if (kind === "change") return heard(rest[0]);
    waiting.get(rest[0])?.resolve(rest[1]);
    waiting.delete(rest[0]);
  });
  socket.on("close", () => {
    for (const { reject } of waiting.values()) reject(new Error("the connection has ended"));
  });
  socket.write(`${JSON.stringify(["hello"])}\n`);
  const isIn = await Promise.race([welcomed.then(() => true), ended.then(() => false)]);
  if (!isIn) throw new Error("the connection has ended");
  return {
    /** The answer; throws an Error whose `refusal` is what the house said. */
    async call(name, args) {
      const number = ++calls;
      socket.write(`${JSON.stringify(["call", number, name, args])}\n`);
      const answer = await new Promise((resolve, reject) => {
        waiting.set(number, { resolve, reject });
      });
      if (answer.error) throw Object.assign(new Error(answer.message), { refusal: answer });
      return answer;
    },
    /** Ends it. */
    async close() {
      const closed = socket.closed ? undefined : once(socket, "close");
      // A server that keeps its half open would be waited for without end.
      socket.end();
      setTimeout(() => socket.destroy(), 50).unref();
      await closed;
    },
  };
}
