import { createServer } from "node:http";
import sockjs from "sockjs";
import { House } from "../node/house.mjs";

// SockJS has no broadcast: the server keeps the connections itself.
const connections = new Set();
const house = new House((change) => {
  const message = JSON.stringify(["change", change]);
  for (const connection of connections) connection.write(message);
});

function parse(text) {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

const service = sockjs.createServer({ prefix: "/sockjs", log() {} });
service.on("connection", (connection) => {
  const session = {};
  connections.add(connection);
  connection.on("close", () => connections.delete(connection));
  connection.on("data", async (text) => {
    const message = parse(text);
    // What is no call has no number to be answered under.
    if (!Array.isArray(message) || message[0] !== "call") return;
    const [, number, name, args] = message;
    const answer = await house.call(session, name, args);
    connection.write(JSON.stringify(["answer", number, answer]));
  });
});

const server = createServer();
service.installHandlers(server);
server.listen(Number(process.env.PORT), process.env.HOST, () => {
  const { address, port } = server.address();
  console.log(JSON.stringify({ listening: `${address}:${port}` }));
});
