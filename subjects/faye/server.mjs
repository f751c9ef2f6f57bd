// Bayeux at /faye: channels and publications are all Faye's own.
import { readFileSync } from 'node:fs'
import http from 'node:http'
import https from 'node:https'
import faye from 'faye'

const { TLS_CERTIFICATE, TLS_KEY } = process.env
const tls = TLS_CERTIFICATE && { cert: readFileSync(TLS_CERTIFICATE), key: readFileSync(TLS_KEY) }
const server = (tls ? https : http).createServer({ ...tls })
server.keepAliveTimeout = 120_000 // ms: a client may be silent for a minute
// Who is silent for two timeouts is thrown out, and on an EventSource a client has nothing to say.
new faye.NodeAdapter({ mount: '/faye', timeout: 600 }).attach(server)
server.listen({ host: process.env.HOST, port: Number(process.env.PORT), backlog: 4096 }, () => {
  const { address, port } = server.address()
  console.log(JSON.stringify({ listening: `${address}:${port}` }))
})
