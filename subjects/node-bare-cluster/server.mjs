// What node-bare is, in several processes. The primary process is the balancer: it accepts connections
// and hands each to a worker in turn. Publications go from worker to primary and, numbered, to all workers,
// so each worker has the same history, and a poll may be answered by any of them. With POSITIONS=own each numbers them
// on its own, so it cannot tell what a client has if another worker answered its last poll.
import cluster from 'node:cluster'
import http from 'node:http'
import { WebSocket, WebSocketServer } from 'ws'

const { HOST = '127.0.0.1', PORT = '0', FEED, FEED_CHANNEL = 'feed', GC, WORKERS = '2', POSITIONS, COMPRESSION_FROM } = process.env
// With context, `ws` would compress every message, however small.
const compression = { threshold: Number(COMPRESSION_FROM), serverNoContextTakeover: true }
const perMessageDeflate = COMPRESSION_FROM ? compression : false
const HISTORY_MAX = 1000
const FEED_RETRY_MS = 100

/** Subscribers of each channel, by framing, so that a publication is encoded once for each of them. */
const channels = new Map()
/** The last publications, `count` being the number of the newest. */
const history = []
if (POSITIONS !== undefined && POSITIONS !== 'own') {
  console.error(`POSITIONS is '${POSITIONS}'; it can be own, or left out`)
  process.exit(2)
}
let count = POSITIONS === 'own' && cluster.isWorker ? cluster.worker.id * 1e6 : 0

function publish(channel, data) {
  process.send({ channel, data: data.toString() })
}

function deliver({ number, channel, data }) {
  count = POSITIONS === 'own' ? count + 1 : number
  history.push({ channel, data })
  if (history.length > HISTORY_MAX) history.shift()
  const subscribers = channels.get(channel)
  if (subscribers) {
    if (subscribers.websocket.size) {
      const frame = Buffer.from(data)
      for (const socket of subscribers.websocket) socket.send(frame, { binary: false })
    }
    if (subscribers.sse.size) {
      const event = Buffer.from(`data: ${data}\n\n`)
      for (const res of subscribers.sse) res.write(event)
    }
    if (subscribers.stream.size) {
      const line = Buffer.from(`${data}\n`)
      for (const res of subscribers.stream) res.write(line)
    }
    if (subscribers.poll.size) {
      const reply = Buffer.from(`[${count},${data}]`)
      for (const waiting of subscribers.poll) if (waiting.after < count) waiting.answer(reply)
    }
  }
  if (GC === 'each') globalThis.gc()
}

/** Puts `subscriber` into the channels and gives the function that takes it out again. */
function subscribe(names, framing, subscriber) {
  for (const name of names) {
    if (!channels.has(name)) {
      channels.set(name, { websocket: new Set(), sse: new Set(), stream: new Set(), poll: new Set() })
    }
    channels.get(name)[framing].add(subscriber)
  }
  return () => names.forEach((name) => channels.get(name)[framing].delete(subscriber))
}

function stream(res, names, framing, type, first) {
  res.writeHead(200, { 'Content-Type': type, 'Cache-Control': 'no-cache' })
  res.write(first)
  res.on('close', subscribe(names, framing, res))
}

function poll(res, names, query) {
  // Another worker may have answered last and been ahead of this one.
  const after = Number(query.get('after') ?? count)
  const current = () => Math.max(after, count)
  const missed = after < count ? history.slice(after - count) : []
  const data = missed.filter((message) => names.includes(message.channel)).map((message) => message.data)
  const answer = (body) => {
    unsubscribe()
    clearTimeout(timer)
    res.writeHead(200, { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(body) }).end(body)
  }
  let unsubscribe = () => {}
  let timer
  if (data.length || !query.has('after') || !query.has('wait')) {
    answer(`[${[current(), ...data]}]`)
    return
  }
  unsubscribe = subscribe(names, 'poll', { after, answer })
  timer = setTimeout(() => answer(`[${current()}]`), query.get('wait') * 1000)
  res.on('close', () => {
    unsubscribe()
    clearTimeout(timer)
  })
}

function body(req, done) {
  const chunks = []
  req.on('data', (chunk) => chunks.push(chunk))
  req.on('end', () => done(Buffer.concat(chunks)))
}

function handle(req, res) {
  const { pathname, searchParams: query } = new URL(req.url, 'http://server')
  const names = query.getAll('channel')
  switch (`${req.method} ${pathname}`) {
    case 'GET /sse':
      return stream(res, names, 'sse', 'text/event-stream', ':\n\n')
    case 'GET /stream':
      return stream(res, names, 'stream', 'application/x-ndjson', '\n')
    case 'GET /poll':
      return poll(res, names, query)
    case 'POST /publish':
      return body(req, (data) => {
        publish(names[0], data)
        res.writeHead(204).end()
      })
    case 'POST /echo':
      return body(req, (data) => res.writeHead(200, { 'Content-Length': data.length }).end(data))
    default:
      res.writeHead(404).end()
  }
}

function accept(socket, url) {
  const { pathname, searchParams: query } = new URL(url, 'http://server')
  const names = query.getAll('channel')
  const target = query.get('publish') ?? names[0]
  socket.on('error', () => {})
  if (pathname === '/ws/echo') {
    socket.on('message', (data) => socket.send(data, { binary: false }))
    return
  }
  socket.on('message', (data) => publish(target, data))
  socket.on('close', subscribe(names, 'websocket', socket))
}

function work() {
  // The deadlines would end connections that post now and then.
  const server = http.createServer({ keepAliveTimeout: 0, headersTimeout: 0, requestTimeout: 0 }, handle)
  const sockets = new WebSocketServer({ noServer: true, clientTracking: false, perMessageDeflate })
  server.on('upgrade', (req, socket, head) => {
    sockets.handleUpgrade(req, socket, head, (accepted) => accept(accepted, req.url))
  })
  process.on('message', deliver)
  // Node's own 511 waiting connections are too few when thousands come at once.
  server.listen({ host: HOST, port: Number(PORT), backlog: 4096 })
}

function balance() {
  const workers = Array.from({ length: Number(WORKERS) }, () => cluster.fork())
  const spread = (channel, data) => {
    count += 1
    for (const worker of workers) worker.send({ number: count, channel, data })
  }
  let listening = 0
  cluster.on('message', (_, { channel, data }) => spread(channel, data))
  cluster.on('listening', (_, { address, port }) => {
    listening += 1
    if (listening === workers.length) console.log(JSON.stringify({ listening: `${address}:${port}` }))
  })
  if (FEED) feed(spread)
}

/** Publishes what a back end sends; its own frames are JSON arrays and nobody else's business. */
function feed(spread) {
  const back = new WebSocket(FEED, { perMessageDeflate: false })
  back.on('message', (data) => data[0] === 0x5b || spread(FEED_CHANNEL, data.toString()))
  back.on('error', () => {})
  back.on('close', () => setTimeout(feed, FEED_RETRY_MS, spread))
}

if (cluster.isPrimary) balance()
else work()
