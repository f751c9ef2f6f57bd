export async function connect(base, heard) {
  const source = new EventSource(`${base}/messages`);
  source.onmessage = ({ data }) => heard(JSON.parse(data));
  await new Promise((resolve) => {
    source.onopen = resolve;
  });
  // Of two requests at the same time, the later may arrive first.
  let sent = Promise.resolve();
  return {
    send(message) {
      const request = { method: "POST", body: JSON.stringify(message) };
      sent = sent.then(() => fetch(`${base}/messages`, request));
    },
    close: () => source.close(),
  };
}
