import io from 'socket.io-client-0.9/dist/socket.io.js'

const socket = io.connect('http://127.0.0.1:8000')
socket.on('connect', () => socket.emit('join', 'news'))
socket.on('msg', (data) => console.log(data))
