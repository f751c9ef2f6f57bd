import WebSocket from "ws";

/** Connects; `heard` is called with each change. */
export async function connect(base, transport, heard) {
  const socket = new WebSocket(`${base.replace(/^http/, "ws")}/house`);
  const calls = new Map();
  let number = 0;

  socket.onmessage = ({ data }) => {
    const [kind, first, answer] = JSON.parse(data);
    if (kind === "change") return heard(first);
    const { resolve, reject } = calls.get(first);
    calls.delete(first);
    if (answer.error) reject(Object.assign(new Error(answer.message), { refusal: answer }));
    else resolve(answer);
  };
  await new Promise((resolve, reject) => {
    socket.onopen = resolve;
    socket.onerror = reject;
  });
  const closed = new Promise((resolve) => (socket.onclose = resolve));
  closed.then(() => {
    for (const { reject } of calls.values()) reject(new Error("the connection has ended"));
  });

  return {
    /** The answer; throws an Error whose `refusal` is what the house said. */
    call(name, args) {
      return new Promise((resolve, reject) => {
        if (socket.readyState !== WebSocket.OPEN) throw new Error("the connection has ended");
        calls.set(++number, { resolve, reject });
        socket.send(JSON.stringify(["call", number, name, args]));
      });
    },
    /** Ends it. */
    async close() {
      socket.close();
      await closed;
    },
  };
}
