import atmosphere from "atmosphere.js";

/** Connects; `heard` is called with each change. */
export async function connect(base, transport, heard) {
  const calls = new Map();
  let number = 0;

  function received({ responseBody }) {
    const [kind, first, answer] = JSON.parse(responseBody);
    if (kind === "change") return heard(first);
    const call = calls.get(first);
    calls.delete(first);
    if (answer.error) call?.reject(Object.assign(new Error(answer.message), { refusal: answer }));
    else call?.resolve(answer);
  }
  function lost() {
    for (const { reject } of calls.values()) reject(new Error("the connection has ended"));
    calls.clear();
  }

  let socket;
  await new Promise((resolve, reject) => {
    socket = atmosphere.subscribe({
      url: `${base}/house`,
      contentType: "application/json",
      transport,
      fallbackTransport: transport,
      trackMessageLength: true,
      reconnectInterval: 1000,
      logLevel: "error",
      onOpen: resolve,
      onMessage: received,
      onMessagePublished: received,
      onClose: lost,
      onError: (error) => {
        reject(new Error(error.reasonPhrase));
        lost();
      },
    });
  });

  return {
    /** The answer; throws an Error whose `refusal` is what the house said. */
    call(name, args) {
      return new Promise((resolve, reject) => {
        calls.set(++number, { resolve, reject });
        socket.push(JSON.stringify(["call", number, name, args]));
      });
    },
    /** Ends it. */
    async close() {
      socket.close();
    },
  };
}
