// A page has the library as a global: <script src="/dependencies/sails.io.js">
io.sails.url = 'http://127.0.0.1:8000'
io.socket.on('msg', (data) => console.log(data))
io.socket.post('/join', { channel: 'news' })
