import { createServer } from "node:http";
import { WebSocket } from "ws";

const messages = [];
const polls = new Set();

function answer(poll) {
  polls.delete(poll);
  poll.res.end(JSON.stringify([messages.length, ...messages.slice(poll.after)]));
}

const server = createServer((req, res) => {
  const [path, query] = req.url.split("?");
  if (`${req.method} ${path}` !== "GET /messages") return res.writeHead(404).end();
  const after = new URLSearchParams(query).get("after");
  const poll = { res, after: Number(after || messages.length) };
  if (!after || poll.after < messages.length) return answer(poll);
  polls.add(poll);
  res.on("close", () => polls.delete(poll));
});
server.listen(0, "127.0.0.1", () => {
  console.log(server.address().port);
});

new WebSocket(process.env.FEED).on("message", (data) => {
  messages.push(`${data}`);
  for (const poll of polls) answer(poll);
});
