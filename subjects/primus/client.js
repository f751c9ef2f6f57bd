// Primus makes the library of a page itself: <script src="http://127.0.0.1:8000/websockets/primus.js">
const primus = new Primus('http://127.0.0.1:8000')
primus.on('open', () => primus.write(['sub', 'news']))
primus.on('data', (data) => console.log(data))
