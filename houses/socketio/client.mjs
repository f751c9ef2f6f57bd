import { once } from "node:events";
import { io } from "socket.io-client";

/** Connects; `heard` is called with each change. */
export async function connect(base, transport, heard) {
  const socket = io(base, { transports: [transport], forceNew: true });
  socket.on("change", heard);
  try {
    await new Promise((resolve, reject) => {
      socket.once("connect", resolve);
      socket.once("connect_error", reject);
    });
  } catch (error) {
    socket.close();
    throw error;
  }
  return {
    /** The answer; throws an Error whose `refusal` is what the house said. */
    async call(name, args) {
      const answer = await socket.emitWithAck(name, args);
      if (answer.error) throw Object.assign(new Error(answer.message), { refusal: answer });
      return answer;
    },
    /** Ends it. */
    async close() {
      const closed = socket.connected ? once(socket.io.engine, "close") : undefined;
      socket.close();
      await closed;
    },
  };
}
