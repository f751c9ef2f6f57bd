import { readFileSync } from "node:fs";
import http from "node:http";
import https from "node:https";
import { Server } from "socket.io";

const { COMPRESSION_FROM, CROSS_ORIGIN, RECOVERY_MS, TLS_CERTIFICATE, TLS_KEY } = process.env;
const tls = TLS_CERTIFICATE && { cert: readFileSync(TLS_CERTIFICATE), key: readFileSync(TLS_KEY) };
// A connection for posts may be silent between two pings of Engine.IO (25 s); Node would close it after 5 s.
const server = (tls ? https : http).createServer({ ...tls, keepAliveTimeout: 65_000 });
const threshold = Number(COMPRESSION_FROM);
const io = new Server(server, {
  // With context, every message would be compressed, however small.
  perMessageDeflate: COMPRESSION_FROM ? { threshold, serverNoContextTakeover: true } : false,
  httpCompression: COMPRESSION_FROM ? { threshold } : false,
  serveClient: false,
  // Off unless it is asked for: it keeps every packet, and adds an offset to each.
  connectionStateRecovery: RECOVERY_MS ? { maxDisconnectionDuration: Number(RECOVERY_MS) } : undefined,
  // Only a browser cares.
  cors: CROSS_ORIGIN ? { origin: true } : undefined,
});

io.on("connection", (socket) => {
  socket.on("join", (channel) => {
    socket.join(channel);
    socket.emit("joined", channel);
  });
  socket.on("pub", (channel, data) => io.to(channel).emit("msg", data));
  socket.on("echo", (data) => socket.emit("echo", data));
});

server.listen(Number(process.env.PORT), process.env.HOST, () => {
  const { address, port } = server.address();
  console.log(JSON.stringify({ listening: `${address}:${port}` }));
});
