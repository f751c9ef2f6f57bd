import { createServer } from "node:http";
import { Server } from "socket.io";
import { House } from "../node/house.mjs";

const server = createServer();
const io = new Server(server);
const house = new House((change) => io.emit("change", change));

io.on("connection", (socket) => {
  // One listener for all calls, so that a name which is none is answered too.
  socket.onAny(async (name, ...rest) => {
    const answer = rest.pop();
    // Without an acknowledgement nobody waits for an answer.
    if (typeof answer === "function") answer(await house.call(socket.data, name, rest[0]));
  });
});

server.listen(Number(process.env.PORT), process.env.HOST, () => {
  const { address, port } = server.address();
  console.log(JSON.stringify({ listening: `${address}:${port}` }));
});
