// One Primus for each transformer, all on one port and with the same channels.
import { readFileSync } from 'node:fs';
import http from 'node:http';
import https from 'node:https';
import Primus from 'primus';

const channels = new Map();
const { TLS_CERTIFICATE, TLS_KEY } = process.env;
const tls = TLS_CERTIFICATE && { cert: readFileSync(TLS_CERTIFICATE), key: readFileSync(TLS_KEY) };
const server = (tls ? https : http).createServer({ ...tls });

function connected(spark) {
  const joined = new Set();
  spark.on('data', ([verb, subject, data]) => {
    if (verb === 'sub') {
      if (!channels.has(subject)) channels.set(subject, new Set());
      joined.add(channels.get(subject).add(spark));
      spark.write(['sub', subject]);
    } else if (verb === 'pub') {
      for (const subscriber of channels.get(subject) ?? []) subscriber.write(data);
    } else if (verb === 'echo') {
      spark.write(['echo', subject]);
    }
  });
  spark.on('end', () => {
    for (const channel of joined) channel.delete(spark);
  });
}

for (const transformer of ['websockets', 'sockjs', 'engine.io', 'faye']) {
  new Primus(server, { transformer, pathname: `/${transformer}` }).on('connection', connected);
}
server.listen(process.env.PORT, process.env.HOST, () => {
  const { address, port } = server.address();
  console.log(JSON.stringify({ listening: `${address}:${port}` }));
});
