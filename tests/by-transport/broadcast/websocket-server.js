import { WebSocket, WebSocketServer } from "ws";

const server = new WebSocketServer({ host: "127.0.0.1", port: 0 }, () => {
  console.log(server.address().port);
});
server.on("connection", (socket) => socket.on("error", console.error));

new WebSocket(process.env.FEED).on("message", (data) => {
  for (const client of server.clients) client.send(`${data}`);
});
