// A channel is a published collection with one document, which each publication changes.
import { EventEmitter } from 'node:events';
import { createServer } from 'node:http';
import DDPServer from 'ddp-server-reactive';

const collections = new Map();
const server = createServer();
const upgrades = new EventEmitter();
const ddp = new DDPServer({ httpServer: upgrades });

// The framework names a session after the millisecond of its beginning, and of two in the
// same millisecond the first would hear nothing: so each gets a millisecond of its own.
let last = 0;
server.on('upgrade', (...upgrade) => {
  while (Date.now() === last);
  upgrades.emit('upgrade', ...upgrade);
  last = Date.now();
});

ddp.methods({
  publish(channel, data) {
    if (!collections.has(channel)) collections.set(channel, ddp.publish(channel));
    const collection = collections.get(channel);
    if (collection.latest) collection.latest.data = data;
    else collection.latest = { data };
  },
  echo: (data) => data,
});

server.listen(process.env.PORT, process.env.HOST, () => {
  const { address, port } = server.address();
  console.log(JSON.stringify({ listening: `${address}:${port}` }));
});
