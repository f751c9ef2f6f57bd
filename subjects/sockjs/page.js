// SockJS's own client over one of its transports. It does not reconnect: whoever uses it makes a new one.
const NAMES = { websocket: 'websocket', eventsource: 'eventsource', xhr_streaming: 'xhr-streaming', xhr: 'xhr-polling' }

globalThis.framework = {
  connect({ target, path, how, channels, onSubscribed, onData, onClosed }) {
    const connection = new globalThis.SockJS(target + path, undefined, { transports: [NAMES[how]] })
    const send = (...message) => connection.send(JSON.stringify(message))
    let missing = channels.length
    connection.onopen = () => channels.forEach((channel) => send('sub', channel))
    connection.onmessage = ({ data }) => {
      const message = JSON.parse(data)
      // What the server says itself is an array, and publications are strings or objects.
      if (!Array.isArray(message)) onData(message)
      else if (message[0] === 'echo') onData(message[1])
      else if (message[0] === 'sub' && --missing === 0) onSubscribed()
    }
    connection.onclose = ({ code, reason }) => onClosed(`SockJS closed with ${code} ${reason}`)
    return {
      publish: (channel, data) => send('pub', channel, JSON.parse(data)),
      echo: (data) => send('echo', JSON.parse(data)),
    }
  },
}
