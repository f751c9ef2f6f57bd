// A house that speaks lines of JSON over TCP, with the fault that FAULT names: what the suite is tested on.

import net from "node:net";
import { House } from "../../node/house.mjs";
import { FAULTS } from "./faults.js";

const fault = FAULTS[process.env.FAULT]?.(tellAll) ?? {};
const connections = new Set();
const house = new House((change) => (fault.tell ? fault.tell(change) : tellAll(change)));

function tellAll(change, fits = () => true) {
  for (const connection of connections)
    if (fits(connection)) connection.socket.write(`${JSON.stringify(["change", change])}\n`);
}

async function take(connection, line) {
  let message;
  try {
    message = JSON.parse(line);
  } catch {
    fault.garbage?.();
    return;
  }
  if (!Array.isArray(message)) return;
  if (message[0] === "hello") connection.socket.write(`${JSON.stringify(["welcome"])}\n`);
  if (message[0] !== "call") return;
  const [, number, name, args] = message;
  const next = (session, ...more) => house.call(session, ...(more.length ? more : [name, args]));
  const answer = fault.call
    ? await fault.call({ connection, number, name, args, next })
    : await next(connection.session);
  if (answer === undefined) return;
  connection.socket.write(
    `${JSON.stringify(["answer", fault.number?.(number) ?? number, answer])}\n`,
  );
}

const server = net.createServer({ allowHalfOpen: fault.isHalfOpen }, (socket) => {
  const connection = { socket, session: {}, isOpen: true };
  connections.add(connection);
  fault.connected?.(connection);
  socket.on("error", () => {});
  socket.on("close", () => {
    connection.isOpen = false;
    connections.delete(connection);
    fault.closed?.(connection);
  });
  let rest = "";
  socket.setEncoding("utf8");
  socket.on("data", (text) => {
    if (connection.isRaw) return fault.frames?.(text, house);
    if (text.startsWith("GET /ws ")) {
      // As far as the suite's garbage needs it: what comes from now on are frames.
      connection.isRaw = true;
      socket.write("HTTP/1.1 101 Switching Protocols\r\n\r\n");
      return;
    }
    // As far as its garbage needs sessions over HTTP.
    const [, asked] = /^(?:POST|GET) \/(open|hear|say)\b/.exec(text) ?? [];
    if (asked) {
      if (asked === "say") fault.said?.();
      socket.write('HTTP/1.1 200 OK\r\n\r\n{"id":"1"}');
      return;
    }
    const lines = (rest + text).split("\n");
    rest = lines.pop();
    for (const line of lines) take(connection, line);
  });
});
server.listen(Number(process.env.PORT), process.env.HOST, () => {
  const { address, port } = server.address();
  console.log(JSON.stringify({ listening: `${address}:${port}` }));
});
