// With EVENT_LOOP_LAG, a timer of so many ms, set again each time that it comes: tells once a second how late it was each
// time, which is how long the event loop lets wait what is due.
const interval = Number(process.env.EVENT_LOOP_LAG)
let lags = []
let last = performance.now()
let told = last

function look() {
  const now = performance.now()
  lags.push(Math.max(0, now - last - interval).toFixed(1))
  last = now
  if (now - told >= 1000) {
    console.log(`event-loop lag of a timer of ${interval} ms: ${lags.join(' ')}`)
    lags = []
    told = now
  }
  setTimeout(look, interval)
}

if (interval > 0) setTimeout(look, interval)
