import { createServer } from "node:http";
import { text } from "node:stream/consumers";

const streams = new Set();

function publish(message) {
  for (const res of streams) res.write(`data: ${message}\n\n`);
}

const server = createServer((req, res) => {
  switch (`${req.method} ${req.url}`) {
    case "GET /messages":
      res.writeHead(200, { "Content-Type": "text/event-stream" }).flushHeaders();
      streams.add(res);
      return res.on("close", () => streams.delete(res));
    case "POST /messages":
      return text(req)
        .then(publish)
        .then(() => res.writeHead(204).end())
        .catch(console.error);
    default:
      return res.writeHead(404).end();
  }
});
server.listen(0, "127.0.0.1", () => {
  console.log(server.address().port);
});
