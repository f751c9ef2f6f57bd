// Bun's own server: its WebSocket pub/sub does the fan-out, event streams and long polls are by hand.
const HISTORY_MAX = 1000
const { TLS_CERTIFICATE, TLS_KEY } = process.env
const JSON_TYPE = { headers: { 'Content-Type': 'application/json' } }
const events = new Map()
const polls = new Map()
/** The last publications; `count` is the number of the newest, and number n is at (n - 1) % HISTORY_MAX. */
const history = []
let count = 0
/** Messages of at least so many characters are compressed. */
const from = Number(process.env.COMPRESSION_FROM ?? Infinity)

function publish(server, channel, data) {
  history[count % HISTORY_MAX] = { channel, data }
  count += 1
  server.publish(channel, data, data.length >= from)
  const event = Buffer.from(`data: ${data}\n\n`)
  for (const controller of events.get(channel) ?? []) controller.enqueue(event)
  const held = polls.get(channel)
  if (held?.size) {
    // Responses share the bytes of a blob; a buffer is copied and a text encoded for each.
    const reply = new Blob([`[${count},${data}]`])
    for (const answer of held) answer(reply)
  }
}

/** The sets of these channels, made where there are none yet. */
function setsOf(map, channels) {
  return channels.map((channel) => map.get(channel) ?? map.set(channel, new Set()).get(channel))
}

function sse(channels) {
  const sets = setsOf(events, channels)
  let mine
  const stream = new ReadableStream({
    start(controller) {
      mine = controller
      controller.enqueue(':\n\n')
      for (const set of sets) set.add(controller)
    },
    cancel() {
      for (const set of sets) set.delete(mine)
    },
  })
  return new Response(stream, { headers: { 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-cache' } })
}

function poll(req, channels, query) {
  const after = Number(query.get('after') ?? count)
  const data = []
  for (let n = Math.max(after, count - HISTORY_MAX, 0); n < count; n += 1) {
    const kept = history[n % HISTORY_MAX]
    if (channels.includes(kept.channel)) data.push(kept.data)
  }
  if (data.length || !query.has('after') || !query.has('wait')) {
    return new Response(`[${[count, ...data]}]`, JSON_TYPE)
  }
  const sets = setsOf(polls, channels)
  const { promise, resolve } = Promise.withResolvers()
  const answer = (reply) => {
    clearTimeout(timer)
    for (const set of sets) set.delete(answer)
    resolve(new Response(reply, JSON_TYPE))
  }
  const timer = setTimeout(() => answer(`[${count}]`), query.get('wait') * 1000)
  for (const set of sets) set.add(answer)
  // Bun keeps the request of a client that is gone until its promise is settled.
  req.signal.addEventListener('abort', () => answer(null))
  return promise
}

const server = Bun.serve({
  hostname: process.env.HOST ?? '127.0.0.1',
  port: process.env.PORT ?? 0,
  tls: TLS_CERTIFICATE && { cert: Bun.file(TLS_CERTIFICATE), key: Bun.file(TLS_KEY) },
  // Bun would end a silent event stream after 10 s.
  idleTimeout: 0,
  async fetch(req, server) {
    const { pathname, searchParams: query } = new URL(req.url)
    const channels = query.getAll('channel')
    switch (`${req.method} ${pathname}`) {
      case 'GET /ws':
      case 'GET /ws/echo': {
        const data = { channels, publish: query.get('publish') ?? channels[0], echo: pathname === '/ws/echo' }
        return server.upgrade(req, { data }) ? undefined : new Response(null, { status: 400 })
      }
      case 'GET /sse':
        return sse(channels)
      case 'GET /poll':
        return poll(req, channels, query)
      case 'POST /publish':
        publish(server, channels[0], await req.text())
        return new Response(null, { status: 204 })
      case 'POST /echo':
        return new Response(await req.text())
      default:
        return new Response(null, { status: 404 })
    }
  },
  websocket: {
    idleTimeout: 0,
    perMessageDeflate: Number.isFinite(from),
    publishToSelf: true,
    open(socket) {
      for (const channel of socket.data.channels) socket.subscribe(channel)
    },
    message(socket, message) {
      if (socket.data.echo) socket.send(message, message.length >= from)
      else publish(server, socket.data.publish, message)
    },
  },
})
console.log(JSON.stringify({ listening: `${server.hostname}:${server.port}` }))
