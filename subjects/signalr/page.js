// SignalR's own client with its automatic reconnection, over the transport that was chosen.
globalThis.framework = {
  connect({ target, path, transport, channels, onSubscribed, onData, onCut, onClosed }) {
    const { HttpTransportType, HubConnectionBuilder, LogLevel } = globalThis.signalR
    const way = transport === 'websocket' ? HttpTransportType.WebSockets : HttpTransportType.ServerSentEvents
    const connection = new HubConnectionBuilder()
      .withUrl(target + path, { transport: way, withCredentials: false })
      .withAutomaticReconnect()
      .configureLogging(LogLevel.None)
      .build()
    const join = () => Promise.all(channels.map((channel) => connection.invoke('Join', channel))).then(onSubscribed)
    connection.on('msg', onData)
    connection.on('echo', onData)
    connection.onreconnecting((error) => onCut(error?.message ?? 'cut'))
    connection.onreconnected(join)
    connection.onclose((error) => onClosed(error?.message ?? 'closed'))
    connection.start().then(join).catch((error) => onClosed(error.message))
    return {
      publish: (channel, data) => void connection.send('Publish', channel, JSON.parse(data)),
      echo: (data) => void connection.send('Echo', JSON.parse(data)),
    }
  },
}
