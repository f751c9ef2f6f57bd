export async function connect(base, heard) {
  const source = new EventSource(`${base}/messages`);
  source.onmessage = ({ data }) => heard(JSON.parse(data));
  await new Promise((resolve) => {
    source.onopen = resolve;
  });
  return { close: () => source.close() };
}
