// What runs inside a page. Each function is sent to the browser as text, so it stands alone; `emit(frame)` and
// `ended()` are the page's way back to the test.

/** Gathers frames while one delivery to the test is under way: a call for each would be slow. */
export function prepare() {
  const queue = [];
  let isBusy = false;
  const flush = async () => {
    if (isBusy) return;
    isBusy = true;
    while (queue.length > 0) await window.deliver(JSON.stringify(queue.splice(0)));
    isBusy = false;
  };
  window.emit = (frame) => {
    queue.push(frame);
    flush();
  };
  window.ended = () => window.emit(null);
}

export function webSocket(url) {
  const socket = new WebSocket(url.replace("http", "ws"));
  socket.onmessage = (event) => emit(JSON.parse(event.data));
  socket.onclose = ended;
}

export function eventSource(url) {
  const source = new EventSource(url);
  source.onopen = () => emit(["open"]);
  source.onerror = ended;
  source.onmessage = (event) => {
    const [name, ...rest] = JSON.parse(event.data);
    emit(name === "msg" ? [name, rest[0], event.lastEventId, rest[1]] : [name, ...rest]);
  };
}

export async function fetchStream(url) {
  try {
    const response = await fetch(url);
    if (!response.ok) throw new Error(await response.text());
    let partial = "";
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    for (let step = await reader.read(); !step.done; step = await reader.read()) {
      const lines = (partial + step.value).split("\n");
      partial = lines.pop();
      for (const line of lines) if (line !== "") emit(JSON.parse(line));
    }
  } catch (error) {
    console.warn(String(error));
  }
  ended();
}

export function foreverFrame(url) {
  window.pushlab = (json) => emit(JSON.parse(json));
  const iframe = document.createElement("iframe");
  iframe.onload = () => {
    ended();
    iframe.remove();
  };
  iframe.src = `${url}&format=script`;
  document.body.append(iframe);
}

export async function longPolling(url) {
  try {
    let next = url;
    for (;;) {
      const response = await fetch(next, { cache: "no-store" });
      if (!response.ok) throw new Error(await response.text());
      const frames = await response.json();
      for (const frame of frames) emit(frame);
      const address = new URL(url);
      address.searchParams.set("after", frames.at(-1)[1]);
      address.searchParams.set("wait", "25");
      next = address.href;
    }
  } catch (error) {
    console.warn(String(error));
  }
  ended();
}
