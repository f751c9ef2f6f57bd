export async function connect(base, heard) {
  const socket = new WebSocket(base.replace("http", "ws"));
  socket.onmessage = ({ data }) => heard(JSON.parse(data));
  await new Promise((resolve) => {
    socket.onopen = resolve;
  });
  return { close: () => socket.close() };
}
