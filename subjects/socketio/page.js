// Socket.IO's own client, without the upgrade from polling, so that a transport is what it says.
globalThis.framework = {
  connect({ target, path, transport, channels, onSubscribed, onData, onCut }) {
    const transports = [transport === 'websocket' ? 'websocket' : 'polling']
    // Clients of one page share nothing, as if each were a page's own.
    const socket = globalThis.io(target, { path, transports, upgrade: false, forceNew: true })
    let missing
    socket.on('connect', () => {
      missing = channels.length
      for (const channel of channels) socket.emit('join', channel)
    })
    socket.on('joined', () => {
      missing -= 1
      if (missing === 0) onSubscribed()
    })
    socket.on('msg', onData)
    socket.on('echo', onData)
    socket.on('disconnect', onCut)
    socket.on('connect_error', (error) => onCut(error.message))
    return {
      publish: (channel, data) => void socket.emit('pub', channel, JSON.parse(data)),
      echo: (data) => void socket.emit('echo', JSON.parse(data)),
    }
  },
}
