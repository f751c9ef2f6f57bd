import atmosphere from 'atmosphere.js'

atmosphere.subscribe({
  url: 'http://127.0.0.1:8000/chat/news',
  transport: 'websocket',
  onMessage: ({ responseBody }) => console.log(responseBody),
})
