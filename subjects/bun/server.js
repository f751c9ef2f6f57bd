// Bun's own server: its WebSocket pub/sub does the fan-out, server-sent events are streams by hand.
const events = new Map()
/** Messages of at least so many characters are compressed. */
const from = Number(process.env.COMPRESSION_FROM ?? Infinity)

function publish(server, channel, data) {
  server.publish(channel, data, data.length >= from)
  const event = Buffer.from(`data: ${data}\n\n`)
  for (const controller of events.get(channel) ?? []) controller.enqueue(event)
}

function sse(channels) {
  const sets = channels.map((channel) => events.get(channel) ?? events.set(channel, new Set()).get(channel))
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

const server = Bun.serve({
  hostname: process.env.HOST ?? '127.0.0.1',
  port: process.env.PORT ?? 0,
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
