export async function connect(base, heard) {
  const ending = new AbortController();
  let next = "";
  async function poll() {
    const url = `${base}/messages?after=${next}`;
    const answer = await fetch(url, { signal: ending.signal });
    const [position, ...messages] = await answer.json();
    next = position;
    for (const message of messages) heard(JSON.parse(message));
  }
  async function keepPolling() {
    for (;;) await poll();
  }
  await poll();
  keepPolling().catch(() => {});
  return { close: () => ending.abort() };
}
