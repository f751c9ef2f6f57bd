// Faye's own client. In pages of another origin it shakes hands by a script (JSONP), and polls by XMLHttpRequest with
// CORS; it opens event streams only to the page's own origin.
globalThis.framework = {
  connect({ target, path, transport, channels, onSubscribed, onData, onCut }) {
    const client = new globalThis.Faye.Client(target + path)
    for (const other of ['websocket', 'eventsource']) {
      if (other !== transport) client.disable(other)
    }
    const place = (channel) => `/c/${channel.replaceAll('.', '!').replaceAll(':', '@')}`
    const own = `/echo/${crypto.randomUUID()}`
    const all = [...channels.map(place), own].map((channel) => client.subscribe(channel, onData))
    let isSubscribed = false
    Promise.all(all).then(() => {
      isSubscribed = true
      onSubscribed()
    }, (error) => onCut(error.message))
    client.on('transport:down', () => onCut('the transport is down'))
    client.on('transport:up', () => isSubscribed && onSubscribed())
    // Over HTTP, two requests under way at once might overtake each other.
    const send = (channel, data) => {
      const answer = client.publish(channel, JSON.parse(data))
      return transport === 'websocket' ? undefined : answer
    }
    return { publish: (channel, data) => send(place(channel), data), echo: (data) => send(own, data) }
  },
}
