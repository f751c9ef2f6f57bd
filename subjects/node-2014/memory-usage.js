// With MEMORY_USAGE, tells at each interval of so many ms what the runtime says of its memory, in bytes; versions before 7
// do not tell what lies outside the heap.
'use strict'
var interval = Number(process.env.MEMORY_USAGE)

function tell() {
  var usage = process.memoryUsage()
  var outside = usage.external === undefined ? '' : ', external ' + usage.external
  console.log('memory usage: heap used ' + usage.heapUsed + ', heap total ' + usage.heapTotal + outside)
}

if (interval > 0) setInterval(tell, interval)
