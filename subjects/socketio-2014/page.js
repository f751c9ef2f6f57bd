// Socket.IO 0.9's own client over one of its transports, without another to fall back to.
globalThis.framework = {
  connect({ target, path, how, transport, channels, onSubscribed, onData, onCut, onClosed }) {
    const polling = how === 'jsonp' ? 'jsonp-polling' : 'xhr-polling'
    const socket = globalThis.io.connect(target, {
      resource: path.slice(1),
      transports: [transport === 'websocket' ? 'websocket' : polling],
      // Clients of one page share nothing, as if each had a page of its own.
      'force new connection': true,
      'max reconnection attempts': Infinity,
    })
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
    // The client reconnects after a lost connection, but not if the first attempt fails or the server sends it away.
    const isGivenUp = () => !socket.socket.connected && !socket.socket.reconnecting
    const giveUp = (why) => {
      socket.removeAllListeners()
      // What is still under way would connect beside the next client.
      socket.socket.options.reconnect = false
      socket.socket.transport?.close()
      onClosed(why)
    }
    const onFailure = (reason) => {
      if (isGivenUp()) giveUp(reason ? `Socket.IO could not connect: ${reason}` : 'Socket.IO could not connect')
    }
    socket.on('error', onFailure)
    socket.on('connect_failed', onFailure)
    socket.on('disconnect', (reason) => {
      onCut(reason ?? 'the connection was cut')
      // It says so before it begins to reconnect.
      setTimeout(() => isGivenUp() && giveUp('Socket.IO was sent away by the server'))
    })
    return {
      publish: (channel, data) => void socket.emit('pub', channel, JSON.parse(data)),
      echo: (data) => void socket.emit('echo', JSON.parse(data)),
    }
  },
}
