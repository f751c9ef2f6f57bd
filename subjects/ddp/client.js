import DDP from 'ddp.js'

const ddp = new DDP({ endpoint: 'ws://127.0.0.1:8000/websocket', SocketConstructor: WebSocket })
ddp.sub('news')
ddp.on('added', ({ fields }) => console.log(fields.data))
ddp.on('changed', ({ fields }) => console.log(fields.data))
