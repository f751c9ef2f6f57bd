// WebSocket, event streams and long polling as the servers of Tangen 2015 have them: a message is parsed and made JSON
// again, once for all over WebSocket and event streams, for each client over long polling, whose server keeps everything.
// Nobody looks at backpressure. Polls at an interval, for what is new or for the newest messages, and the list of users are
// those of the chat of Bigestans 2014, and the event stream that brings a message back is that of its pilot. It runs on
// Node.js 0.10 to today's and on io.js, with ws 0.4 (WS=ws), 0.5, 0.7 or 0.8 (WS=ws-0.8).
//
// What an experiment may change to find a cause: TURNS=one handles one message, of the back end or of a client, in each
// turn of the event loop, where by default a turn handles all that were read; WRITES=gathered puts what waits for a
// socket into one write; EVENTS=two-writes writes an event in two pieces, as that chat does.
'use strict'
var express = require('express')
var http = require('http')
var url = require('url')
var env = process.env
var ws = require(env.WS || 'ws')
require('./event-loop-lag')
require('./memory-usage')

var OPEN = 1
var FEED_RETRY_MS = 100
var bytes = Buffer.from && Buffer.from !== Uint8Array.from ? Buffer.from : function (text) { return new Buffer(text) }

/** Subscribers: `names` are their channels. */
var sockets = []
var streams = []
var polls = []
/** Everything since the first poll. */
var messages = []
var isPolled = false
/** Whom the list of users names, as long as it is asked for. */
var users = ['sender', 'receiver']

function hears(channel) {
  return function (subscriber) { return subscriber.names.indexOf(channel) >= 0 }
}

function remove(list, one) {
  var at = list.indexOf(one)
  if (at >= 0) list.splice(at, 1)
}

function send(res, event) {
  if (env.EVENTS === 'two-writes') res.write('event: message\n')
  res.write(event)
}

function publish(channel, text) {
  var message = JSON.parse(text)
  if (isPolled) messages.push({ channel: channel, message: message })
  var own = sockets.filter(hears(channel))
  if (own.length) {
    var frame = JSON.stringify(message)
    own.forEach(function (client) {
      if (client.socket.readyState === OPEN) client.socket.send(frame)
    })
  }
  own = streams.filter(hears(channel))
  if (own.length) {
    var event = 'data: ' + JSON.stringify(message) + '\n\n'
    own.forEach(function (client) { send(client.res, event) })
  }
  var due = polls.filter(hears(channel))
  if (due.length) {
    polls = polls.filter(function (poll) { return due.indexOf(poll) < 0 })
    due.forEach(answer)
  }
}

/** What was read and no turn has published yet. */
var waiting = []

function publishNext() {
  var one = waiting.shift()
  publish(one.channel, one.text)
  one.done()
  if (waiting.length) setImmediate(publishNext)
}

/** Publishes what was read, at once or in a turn of its own; then `done`. */
function take(channel, text, done) {
  if (env.TURNS !== 'one') {
    publish(channel, text)
    return done()
  }
  waiting.push({ channel: channel, text: text, done: done })
  if (waiting.length === 1) setImmediate(publishNext)
}

function nothing() {}

/** With everything from `next` on. */
function answer(poll) {
  clearTimeout(poll.timer)
  reply(poll.res, messages.slice(poll.next).filter(function (one) { return hears(one.channel)(poll) }))
}

/** The reply is made for each client anew. */
function reply(res, news) {
  var data = news.map(function (one) { return one.message })
  res.contentType('application/json')
  res.send(JSON.stringify([messages.length].concat(data)))
}

/** The last so many messages for these names, in order. */
function newest(names, number) {
  var found = []
  for (var at = messages.length - 1; at >= 0 && found.length < number; at -= 1) {
    if (hears(messages[at].channel)({ names: names })) found.unshift(messages[at])
  }
  return found
}

/** What waits while a write is under way leaves in the next one. */
function gather(socket) {
  var write = socket.write
  var waiting = []
  var isBusy = false
  function flush() {
    isBusy = waiting.length > 0
    if (!isBusy) return
    var all = Buffer.concat(waiting)
    waiting = []
    write.call(socket, all, flush)
  }
  socket.write = function (data) {
    waiting.push(Buffer.isBuffer(data) ? data : bytes(data))
    if (!isBusy) flush()
    return true
  }
}

function listOf(value) {
  return value === undefined ? [] : [].concat(value)
}

function body(req, done) {
  var chunks = []
  req.on('data', function (chunk) { chunks.push(chunk) })
  req.on('end', function () { done(Buffer.concat(chunks).toString()) })
}

var app = express()

// A page of another origin may ask; what it wants to post as JSON its browser asks about first.
if (env.CROSS_ORIGIN) {
  app.use(function (req, res, next) {
    res.setHeader('Access-Control-Allow-Origin', '*')
    if (req.method !== 'OPTIONS') return next()
    res.setHeader('Access-Control-Allow-Headers', 'content-type')
    res.setHeader('Access-Control-Max-Age', '7200')
    res.status(204).end()
  })
}

app.get('/sse', function (req, res) {
  var client = { res: res, names: listOf(req.query.channel) }
  streams.push(client)
  res.writeHead(200, { 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-cache', Connection: 'keep-alive' })
  res.write('\n')
  req.on('close', function () { remove(streams, client) })
})

app.get('/poll', function (req, res) {
  isPolled = true
  if (req.query.newest !== undefined) return reply(res, newest(listOf(req.query.channel), Number(req.query.newest)))
  var next = req.query.after === undefined ? messages.length : Number(req.query.after)
  var poll = { res: res, names: listOf(req.query.channel), next: next }
  var isDue = messages.slice(next).some(function (one) { return hears(one.channel)(poll) })
  if (isDue || req.query.after === undefined || req.query.wait === undefined) return answer(poll)
  poll.timer = setTimeout(function () {
    remove(polls, poll)
    answer(poll)
  }, req.query.wait * 1000)
  polls.push(poll)
  // A request that was answered is not in the list any more.
  req.on('close', function () {
    clearTimeout(poll.timer)
    remove(polls, poll)
  })
})

app.get('/users', function (req, res) { res.json(users) })

app.post('/publish', function (req, res) {
  body(req, function (text) {
    take(listOf(req.query.channel)[0], text, function () { res.status(204).end() })
  })
})

app.get('/sse/echo', function (req, res) {
  res.writeHead(200, { 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-cache', Connection: 'keep-alive' })
  send(res, 'data: ' + JSON.stringify(JSON.parse(req.query.data)) + '\n\n')
})

app.post('/echo', function (req, res) {
  body(req, function (text) { res.send(text) })
})

var server = http.createServer(app)
// Later versions end connections that post now and then.
server.timeout = server.keepAliveTimeout = server.headersTimeout = server.requestTimeout = 0
if (env.WRITES === 'gathered') server.on('connection', gather)

var options = { noServer: true, disableHixie: true, clientTracking: false, perMessageDeflate: false }
var acceptor = new ws.Server(options)
server.on('upgrade', function (req, socket, head) {
  acceptor.handleUpgrade(req, socket, head, function (accepted) { accept(accepted, url.parse(req.url, true)) })
})

function accept(socket, target) {
  var names = listOf(target.query.channel)
  var client = { socket: socket, names: names }
  socket.on('error', nothing)
  if (target.pathname === '/ws/echo') {
    socket.on('message', function (data) { socket.send(JSON.stringify(JSON.parse(data))) })
    return
  }
  sockets.push(client)
  socket.on('message', function (data) { take(target.query.publish || names[0], data, nothing) })
  socket.on('close', function () { remove(sockets, client) })
}

/** Publishes what a back end sends; its own frames are JSON arrays and nobody else's business. */
function feed() {
  var back = new ws(env.FEED, { perMessageDeflate: false })
  back.on('message', function (data) {
    if (data[0] !== '[') take(env.FEED_CHANNEL || 'feed', data, nothing)
  })
  back.on('error', nothing)
  back.on('close', function () { setTimeout(feed, FEED_RETRY_MS) })
}

server.listen(Number(env.PORT || 0), env.HOST || '127.0.0.1', 4096, function () {
  var at = server.address()
  console.log(JSON.stringify({ listening: at.address + ':' + at.port }))
})
if (env.FEED) feed()
