import SockJS from "sockjs-client";

/** Connects; `heard` is called with each change. */
export async function connect(base, transport, heard) {
  const connection = new SockJS(`${base}/sockjs`, null, { transports: [transport] });
  const waiting = new Map();
  let calls = 0;
  connection.onmessage = ({ data }) => {
    const [kind, ...rest] = JSON.parse(data);
    if (kind === "change") return heard(rest[0]);
    const [number, answer] = rest;
    waiting.get(number)?.resolve(answer);
    waiting.delete(number);
  };
  const closed = new Promise((resolve) => {
    connection.onclose = ({ reason }) => {
      for (const { reject } of waiting.values()) reject(new Error(reason));
      resolve(reason);
    };
  });
  await new Promise((resolve, reject) => {
    connection.onopen = resolve;
    closed.then((reason) => reject(new Error(reason)));
  });
  return {
    /** The answer; throws an Error whose `refusal` is what the house said. */
    async call(name, args) {
      const number = ++calls;
      const answer = await new Promise((resolve, reject) => {
        waiting.set(number, { resolve, reject });
        connection.send(JSON.stringify(["call", number, name, args]));
      });
      if (answer.error) throw Object.assign(new Error(answer.message), { refusal: answer });
      return answer;
    },
    /** Ends it. */
    async close() {
      connection.close();
      await closed;
    },
  };
}
