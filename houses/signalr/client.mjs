import { HttpTransportType, HubConnectionBuilder, LogLevel } from "@microsoft/signalr";

const transports = {
  websocket: HttpTransportType.WebSockets,
  sse: HttpTransportType.ServerSentEvents,
};

/** The server itself refuses what is no method of the hub, with text alone. */
function refused(error) {
  if (!error.message.startsWith("Unknown method")) throw error;
  return { error: "bad-request", message: error.message };
}

/** Connects; `heard` is called with each change. */
export async function connect(base, transport, heard) {
  const connection = new HubConnectionBuilder()
    .withUrl(`${base}/hub`, { transport: transports[transport] })
    .withAutomaticReconnect()
    .configureLogging(LogLevel.None)
    .build();
  connection.on("change", heard);
  await connection.start();
  // The framework shakes hands before it counts a client among all; after an answer it has.
  await connection.invoke("list", {});
  return {
    /** The answer; throws an Error whose `refusal` is what the house said. */
    async call(name, args) {
      const answer = await connection.invoke(name, args).catch(refused);
      if (answer.error) throw Object.assign(new Error(answer.message), { refusal: answer });
      return answer;
    },
    /** Ends it. */
    close: () => connection.stop(),
  };
}
