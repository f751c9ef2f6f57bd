// The broadcast of Johannessen's load test: a loop over connections, for each channel. His counters of messages and the
// pages that Express served are left out.
'use strict'
var http = require('http')
var sockjs = require('sockjs')
var env = process.env

/** The connections of each channel by their ids. */
var channels = Object.create(null)
// A client that is between two polls for longer than 5 s stays.
var service = sockjs.createServer({ prefix: '/sockjs', disconnect_delay: 60000, log: function () {} })

service.on('connection', function (connection) {
  var joined = []
  connection.on('data', function (text) {
    var message = JSON.parse(text)
    var verb = message[0]
    if (verb === 'sub') {
      var channel = channels[message[1]] = channels[message[1]] || Object.create(null)
      channel[connection.id] = connection
      joined.push(channel)
      connection.write(text)
    } else if (verb === 'pub') {
      broadcast(channels[message[1]], JSON.stringify(message[2]))
    } else if (verb === 'echo') {
      connection.write(text)
    }
  })
  connection.on('close', function () {
    joined.forEach(function (channel) { delete channel[connection.id] })
  })
})

function broadcast(channel, text) {
  for (var id in channel) channel[id].write(text)
}

var server = http.createServer()
// Otherwise a connection on which nothing is sent for two minutes ends.
server.timeout = 0
if (env.NODELAY) server.on('connection', function (socket) { socket.setNoDelay(true) })
service.installHandlers(server)
server.listen(Number(env.PORT || 0), env.HOST || '127.0.0.1', 4096, function () {
  var at = server.address()
  console.log(JSON.stringify({ listening: at.address + ':' + at.port }))
})
