// A process that opens many connections, as `node flood.js PORT COUNT ADDRESS`, and says in JSON lines what became of
// them: `held` answered as streams, `refused` answered 503, `closed` without an answer. It holds them until its
// standard input ends.

import net from "node:net";

const [port, count, address] = process.argv.slice(2);
/** More at once would overflow the server's backlog, and the kernel would retry for seconds. */
const MAX_PENDING = 100;

const tally = { held: 0, refused: 0, closed: 0, error: {} };
let opened = 0;
let settled = 0;

function open() {
  opened += 1;
  let isSettled = false;
  const settle = (outcome) => {
    if (isSettled) return;
    isSettled = true;
    tally[outcome] += 1;
    settled += 1;
    if (settled === Number(count)) console.log(JSON.stringify(tally));
    else if (opened < Number(count)) open();
  };
  const socket = net.connect({ port: Number(port), host: "127.0.0.1", localAddress: address });
  let answer = "";
  socket.on("connect", () => socket.write("GET /sse?channel=flood HTTP/1.1\r\nHost: h\r\n\r\n"));
  socket.on("data", (bytes) => {
    answer += bytes.toString("latin1");
    if (answer.startsWith("HTTP/1.1 200")) settle("held");
    if (answer.includes('"too-many-connections"')) {
      settle("refused");
      if (!answer.startsWith("HTTP/1.1 503")) throw new Error(answer);
    }
  });
  socket.on("error", (error) => {
    tally.error[error.code] = (tally.error[error.code] ?? 0) + 1;
  });
  socket.on("close", () => settle("closed"));
}

for (let n = 0; n < Math.min(MAX_PENDING, Number(count)); n += 1) open();
process.stdin.resume().on("end", () => process.exit());
