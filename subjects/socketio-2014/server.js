// The broadcast of Johannessen's load test, to a room in place of all clients, which takes Socket.IO the same way. His
// counters of messages and the pages that Express served are left out.
'use strict'
var http = require('http')
var env = process.env

var server = http.createServer()
// Otherwise a connection on which nothing is sent for two minutes ends.
server.timeout = 0
// Warnings alone, as in the study. Pages of any origin may connect, as Socket.IO 0.9 has it by default.
var io = require('socket.io').listen(server, { 'log level': 1, 'browser client': false })

io.sockets.on('connection', function (socket) {
  socket.on('join', function (channel) {
    socket.join(channel)
    socket.emit('joined', channel)
  })
  socket.on('pub', function (channel, data) { io.sockets.in(channel).emit('msg', data) })
  socket.on('echo', function (data) { socket.emit('echo', data) })
})

server.listen(Number(env.PORT || 0), env.HOST || '127.0.0.1', 4096, function () {
  var at = server.address()
  console.log(JSON.stringify({ listening: at.address + ':' + at.port }))
})
