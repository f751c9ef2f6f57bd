// The four servers of the polling study of 2017, in one file: `http` and `ws` without a framework. A message is made JSON
// once for all receivers, who stand in lists; answered polls are taken out of theirs. The study's answer to a poll
// is the current message, or nothing if the client has it; this one brings every message that the client has not seen,
// unless it asks for the newest ones. It runs on Node.js 7 to today's.
'use strict'
const http = require('http')
const url = require('url')
const WebSocket = require('ws')
require('./memory-usage')

const { HOST = '127.0.0.1', PORT = '0', FEED, FEED_CHANNEL = 'feed', GC, CROSS_ORIGIN } = process.env
const HISTORY_MAX = 1000
const FEED_RETRY_MS = 100

/** Who receives: each has the `names` of its channels. */
const sockets = new Set()
const streams = new Set()
let polls = new Set()
/** The last messages, `count` being the number of the newest. */
const history = []
let count = 0

const hears = (channel) => ({ names }) => names.includes(channel)

function publish(channel, data) {
  count += 1
  history.push({ channel, data })
  if (history.length > HISTORY_MAX) history.shift()
  const isDue = hears(channel)
  for (const one of sockets) if (isDue(one) && one.socket.readyState === WebSocket.OPEN) one.socket.send(data)
  for (const one of streams) if (isDue(one)) one.res.write(`data: ${data}\n\n`)
  const due = Array.from(polls).filter(isDue)
  if (due.length) {
    polls = new Set(Array.from(polls).filter((one) => !isDue(one)))
    for (const one of due) answer(one, `[${count},${data}]`)
  }
  if (GC === 'each') global.gc()
}

function answer({ res, timer }, body) {
  clearTimeout(timer)
  res.writeHead(200, { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(body) })
  res.end(body)
}

const listOf = (value) => (value === undefined ? [] : [].concat(value))

function stream(req, res, names) {
  res.writeHead(200, { 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-cache' })
  res.write(':\n\n')
  const one = { res, names }
  streams.add(one)
  req.on('close', () => streams.delete(one))
}

/** The last so many messages that somebody hears, in order. */
const newest = (isMine, number) => (number > 0 ? history.filter(isMine).slice(-number) : [])

function poll(req, res, names, query) {
  const isMine = ({ channel }) => names.includes(channel)
  const after = query.after === undefined ? count : Number(query.after)
  const missed = after < count ? history.slice(after - count) : []
  const wanted = (query.newest === undefined ? missed.filter(isMine) : newest(isMine, Number(query.newest))).map(({ data }) => data)
  const one = { res, names }
  if (wanted.length || query.after === undefined || query.wait === undefined) {
    answer(one, `[${[count].concat(wanted)}]`)
    return
  }
  one.timer = setTimeout(() => {
    polls.delete(one)
    answer(one, `[${count}]`)
  }, query.wait * 1000)
  polls.add(one)
  req.on('close', () => {
    clearTimeout(one.timer)
    polls.delete(one)
  })
}

function body(req, done) {
  const chunks = []
  req.on('data', (chunk) => chunks.push(chunk))
  req.on('end', () => done(Buffer.concat(chunks).toString()))
}

/** Pages of another origin may ask, as in the study; before they post JSON, their browser asks whether they may. */
function allow(req, res) {
  res.setHeader('Access-Control-Allow-Origin', '*')
  if (req.method !== 'OPTIONS') return false
  res.writeHead(204, { 'Access-Control-Allow-Headers': 'content-type', 'Access-Control-Max-Age': '7200' })
  res.end()
  return true
}

const server = http.createServer((req, res) => {
  if (CROSS_ORIGIN && allow(req, res)) return
  const { pathname, query } = url.parse(req.url, true)
  const names = listOf(query.channel)
  switch (`${req.method} ${pathname}`) {
    case 'GET /sse':
      stream(req, res, names)
      break
    case 'GET /poll':
      poll(req, res, names, query)
      break
    case 'POST /publish':
      body(req, (data) => {
        publish(names[0], data)
        res.writeHead(204)
        res.end()
      })
      break
    case 'POST /echo':
      body(req, (data) => res.end(data))
      break
    default:
      res.writeHead(404)
      res.end()
  }
})
// Two minutes otherwise; later versions have further deadlines.
server.timeout = server.keepAliveTimeout = server.headersTimeout = server.requestTimeout = 0

const acceptor = new WebSocket.Server({ noServer: true, clientTracking: false, perMessageDeflate: false })
server.on('upgrade', (req, socket, head) => {
  acceptor.handleUpgrade(req, socket, head, (accepted) => accept(accepted, url.parse(req.url, true)))
})

function accept(socket, { pathname, query }) {
  const names = listOf(query.channel)
  const one = { socket, names }
  socket.on('error', () => {})
  if (pathname === '/ws/echo') {
    socket.on('message', (data) => socket.send(String(data)))
    return
  }
  sockets.add(one)
  socket.on('message', (data) => publish(query.publish || names[0], String(data)))
  socket.on('close', () => sockets.delete(one))
}

/** Publishes what a back end sends; its own frames are JSON arrays and nobody else's business. */
function feed() {
  const back = new WebSocket(FEED, { perMessageDeflate: false })
  back.on('message', (data) => {
    const text = String(data)
    if (text[0] !== '[') publish(FEED_CHANNEL, text)
  })
  back.on('error', () => {})
  back.on('close', () => setTimeout(feed, FEED_RETRY_MS))
}

server.listen({ host: HOST, port: Number(PORT), backlog: 4096 }, () => {
  const { address, port } = server.address()
  console.log(JSON.stringify({ listening: `${address}:${port}` }))
})
if (FEED) feed()
