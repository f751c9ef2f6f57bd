import { createServer } from "node:http";
import { WebSocket } from "ws";

const streams = new Set();

const server = createServer((req, res) => {
  if (`${req.method} ${req.url}` !== "GET /messages") return res.writeHead(404).end();
  res.writeHead(200, { "Content-Type": "text/event-stream" }).flushHeaders();
  streams.add(res);
  res.on("close", () => streams.delete(res));
});
server.listen(0, "127.0.0.1", () => {
  console.log(server.address().port);
});

new WebSocket(process.env.FEED).on("message", (data) => {
  for (const res of streams) res.write(`data: ${data}\n\n`);
});
