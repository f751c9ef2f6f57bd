// A channel is a set of connections; SockJS itself has neither channels nor a broadcast.
import { readFileSync } from 'node:fs';
import http from 'node:http';
import https from 'node:https';
import sockjs from 'sockjs';

const channels = new Map();
const service = sockjs.createServer({ prefix: '/sockjs', disconnect_delay: 60_000, log() {} });

service.on('connection', (connection) => {
  const joined = new Set();
  connection.on('data', (text) => {
    const [verb, subject, data] = JSON.parse(text);
    if (verb === 'sub') {
      if (!channels.has(subject)) channels.set(subject, new Set());
      joined.add(channels.get(subject).add(connection));
      connection.write(text);
    } else if (verb === 'pub') {
      const message = JSON.stringify(data);
      for (const subscriber of channels.get(subject) ?? []) subscriber.write(message);
    } else if (verb === 'echo') {
      connection.write(text);
    }
  });
  connection.on('close', () => {
    for (const channel of joined) channel.delete(connection);
  });
});

const { TLS_CERTIFICATE, TLS_KEY } = process.env;
const tls = TLS_CERTIFICATE && { cert: readFileSync(TLS_CERTIFICATE), key: readFileSync(TLS_KEY) };
const server = (tls ? https : http).createServer({ ...tls, keepAliveTimeout: 65_000 });
service.installHandlers(server);
server.listen(process.env.PORT, process.env.HOST, () => {
  const { address, port } = server.address();
  console.log(JSON.stringify({ listening: `${address}:${port}` }));
});
