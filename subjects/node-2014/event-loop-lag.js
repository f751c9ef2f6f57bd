// With EVENT_LOOP_LAG, a timer of so many ms, set again each time that it comes: tells once a second how late it was each
// time, which is how long the event loop lets wait what is due.
'use strict'
var interval = Number(process.env.EVENT_LOOP_LAG)
var lags = []
var last = milliseconds()
var told = last

function milliseconds() {
  var time = process.hrtime()
  return time[0] * 1e3 + time[1] / 1e6
}

function look() {
  var now = milliseconds()
  lags.push(Math.max(0, now - last - interval).toFixed(1))
  last = now
  if (now - told >= 1000) {
    console.log('event-loop lag of a timer of ' + interval + ' ms: ' + lags.join(' '))
    lags = []
    told = now
  }
  setTimeout(look, interval)
}

if (interval > 0) setTimeout(look, interval)
