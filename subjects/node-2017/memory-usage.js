// With MEMORY_USAGE, tells at each interval of so many ms what the runtime says of its memory, in bytes.
'use strict'
const interval = Number(process.env.MEMORY_USAGE)

function tell() {
  const { heapUsed, heapTotal, external } = process.memoryUsage()
  console.log(`memory usage: heap used ${heapUsed}, heap total ${heapTotal}, external ${external}`)
}

if (interval > 0) setInterval(tell, interval)
