import { createServer } from "node:http";
import { text } from "node:stream/consumers";

const messages = [];
const polls = new Set();

function answer(poll) {
  polls.delete(poll);
  poll.res.end(JSON.stringify([messages.length, ...messages.slice(poll.after)]));
}

function publish(message) {
  messages.push(message);
  for (const poll of polls) answer(poll);
}

const server = createServer((req, res) => {
  const [path, query] = req.url.split("?");
  switch (`${req.method} ${path}`) {
    case "GET /messages": {
      const after = new URLSearchParams(query).get("after");
      const poll = { res, after: Number(after || messages.length) };
      if (!after || poll.after < messages.length) return answer(poll);
      polls.add(poll);
      return res.on("close", () => polls.delete(poll));
    }
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
