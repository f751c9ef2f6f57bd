// Every transport with nothing but `node:http` and `ws`, as somebody writes it who uses no framework.
// Nobody looks at backpressure: what a client does not take is queued in this process without bound.
import { readFileSync } from 'node:fs'
import http from 'node:http'
import https from 'node:https'
import { WebSocket, WebSocketServer } from 'ws'
import './event-loop-lag.mjs'
import './memory-usage.mjs'

const { HOST = '127.0.0.1', PORT = '0', FEED, FEED_CHANNEL = 'feed', GC, EVENTS, COMPRESSION_FROM, CROSS_ORIGIN, TLS_CERTIFICATE, TLS_KEY } = process.env
const tls = TLS_CERTIFICATE && { cert: readFileSync(TLS_CERTIFICATE), key: readFileSync(TLS_KEY) }
// With context, `ws` would compress every message, however small.
const compression = { threshold: Number(COMPRESSION_FROM), serverNoContextTakeover: true }
const perMessageDeflate = COMPRESSION_FROM ? compression : false
const HISTORY_MAX = 1000
const FEED_RETRY_MS = 100

/** Subscribers of each channel, by framing, so that a publication is encoded once for each of them. */
const channels = new Map()
/** The last publications, `count` being the number of the newest. */
const history = []
let count = 0

function publish(channel, data) {
  count += 1
  history.push({ channel, data: data.toString() })
  if (history.length > HISTORY_MAX) history.shift()
  const subscribers = channels.get(channel)
  if (subscribers) {
    for (const socket of subscribers.websocket) socket.send(data, { binary: false })
    if (subscribers.sse.size) {
      const event = Buffer.from(`data: ${data}\n\n`)
      for (const res of subscribers.sse) send(res, event)
    }
    if (subscribers.stream.size) {
      const line = Buffer.from(`${data}\n`)
      for (const res of subscribers.stream) res.write(line)
    }
    if (subscribers.poll.size) {
      const reply = Buffer.from(`[${count},${data}]`)
      for (const answer of subscribers.poll) answer(reply)
    }
  }
  if (GC === 'each') globalThis.gc()
}

function send(res, event) {
  if (EVENTS === 'two-writes') res.write('event: message\n')
  res.write(event)
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

/** The last `number` publications of these, in order. */
function newest(isMine, number) {
  const found = []
  for (let at = history.length - 1; at >= 0 && found.length < number; at -= 1) if (isMine(history[at])) found.unshift(history[at])
  return found
}

function poll(res, names, query) {
  const isMine = (message) => names.includes(message.channel)
  const after = Number(query.get('after') ?? count)
  const missed = after < count ? history.slice(after - count).filter(isMine) : []
  const wanted = query.has('newest') ? newest(isMine, Number(query.get('newest'))) : missed
  const data = wanted.map((message) => message.data)
  const answer = (body) => {
    unsubscribe()
    clearTimeout(timer)
    res.writeHead(200, { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(body) }).end(body)
  }
  let unsubscribe = () => {}
  let timer
  if (data.length || !query.has('after') || !query.has('wait')) {
    answer(`[${[count, ...data]}]`)
    return
  }
  unsubscribe = subscribe(names, 'poll', answer)
  timer = setTimeout(() => answer(`[${count}]`), query.get('wait') * 1000)
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

/** A page of another origin may ask; what it wants to post as JSON its browser asks about first. */
function handleCrossOrigin(req, res) {
  res.setHeader('Access-Control-Allow-Origin', '*')
  if (req.method !== 'OPTIONS') return handle(req, res)
  res.writeHead(204, { 'Access-Control-Allow-Headers': 'content-type', 'Access-Control-Max-Age': '7200' }).end()
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
    case 'GET /users':
      return res.writeHead(200, { 'Content-Type': 'application/json' }).end('["sender","receiver"]')
    case 'POST /publish':
      return body(req, (data) => {
        publish(names[0], data)
        res.writeHead(204).end()
      })
    case 'GET /sse/echo':
      res.writeHead(200, { 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-cache' })
      return send(res, `data: ${query.get('data')}\n\n`)
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

/** Publishes what a back end sends; its own frames are JSON arrays and nobody else's business. */
function feed() {
  const back = new WebSocket(FEED, { perMessageDeflate: false })
  back.on('message', (data) => data[0] === 0x5b || publish(FEED_CHANNEL, data))
  back.on('error', () => {})
  back.on('close', () => setTimeout(feed, FEED_RETRY_MS))
}

// The deadlines would end connections that post now and then.
const deadlines = { keepAliveTimeout: 0, headersTimeout: 0, requestTimeout: 0 }
const server = (tls ? https : http).createServer({ ...tls, ...deadlines }, CROSS_ORIGIN ? handleCrossOrigin : handle)
const sockets = new WebSocketServer({ noServer: true, clientTracking: false, perMessageDeflate })
server.on('upgrade', (req, socket, head) => {
  sockets.handleUpgrade(req, socket, head, (accepted) => accept(accepted, req.url))
})
// Node's own 511 waiting connections are too few when thousands come at once.
server.listen({ host: HOST, port: Number(PORT), backlog: 4096 }, () => {
  const { address, port } = server.address()
  console.log(JSON.stringify({ listening: `${address}:${port}` }))
})
if (FEED) feed()
