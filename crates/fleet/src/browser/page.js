// The clients of one page. Those of our own server use what browsers offer as people use it by hand: no library, no
// fallback. Those of others have an adapter over the framework's own client, `globalThis.framework`; docs/subjects.md
// says what it does. What all are to do comes with the answers to the page's reports; see messages.rs.

"use strict";

const FIRST_PAUSE_MS = 100;
const PAUSE_DOUBLINGS_MAX = 6;
const ERRORS_MAX = 100;
/** Stamp and receipt mark, in quotes or not, stand within so many characters. */
const MARKS_MAX = 64;

const page = new URLSearchParams(location.search).get("page");
const clients = new Map();
const schedule = [];
let setup;
let timer;
let answered = "";
let happened = nothing();

function nothing() {
  const lists = { deliveries: [], published: [], requests: [], connects: [], errors: [], refused: [] };
  return { ...lists, gaps: 0, reconnects: 0, visibility_changes: 0 };
}

function note(error, list = happened.errors) {
  if (list.length < ERRORS_MAX) list.push(String(error).slice(0, 200));
}

function countRequest(client) {
  happened.requests.push([client.number, performance.now()]);
}

/** One of a framework's client: whose of several it is, is not known. Not `countRequest`, which is global too. */
globalThis.countRequestOfFramework = () => happened.requests.push([null, performance.now()]);

/** A frame of the native protocol. Over an event stream it has no cursor. */
function take(client, frame, now) {
  switch (frame[0]) {
    case "msg":
      if (frame.length > 3) client.cursor = frame[2];
      deliver(client, frame[frame.length - 1], now);
      break;
    case "echo":
      deliver(client, frame[1], now);
      break;
    case "cursor":
      client.cursor = frame[1];
      break;
    case "gap":
      client.cursor = frame[2];
      happened.gaps += 1;
      break;
    case "error":
      note(`error frame: ${frame[1]} ${frame[2]}`);
  }
}

function deliver(client, data, now) {
  const bears = typeof data?.stamp === "string" ? data.stamp : typeof data === "string" ? data : JSON.stringify(data);
  happened.deliveries.push([client.number, now, bears.slice(0, MARKS_MAX)]);
}

function isSubscribed(client) {
  client.attempts = 0;
  if (client.isSubscribed) return;
  client.isSubscribed = true;
  client.freeAt = performance.now();
  happened.connects.push(client.freeAt - client.openedAt);
  flush(client);
}

function isCut(client, why) {
  note(why);
  client.isSubscribed = false;
  const pause = FIRST_PAUSE_MS * 2 ** Math.min(client.attempts, PAUSE_DOUBLINGS_MAX);
  client.attempts += 1;
  setTimeout(
    () => {
      happened.reconnects += 1;
      open(client);
    },
    pause * (0.5 + Math.random() / 2),
  );
}

function open(client) {
  client.openedAt = performance.now();
  if (setup.framework) openWithFramework(client);
  else openers[setup.transport](client);
}

/** The framework's own client, which may reconnect by itself. What comes from one that was given up does not count. */
function openWithFramework(client) {
  const turn = (client.turn = (client.turn ?? 0) + 1);
  const ifCurrent = (act) => (value) => {
    if (client.turn === turn) act(value);
  };
  client.connection = globalThis.framework.connect({
    ...setup.framework,
    target: setup.target,
    transport: setup.transport,
    sends_echoes: setup.sends_echoes,
    wait_s: setup.wait_s,
    user_list: Boolean(setup.users),
    kept: (client.kept ??= {}),
    channels: new URLSearchParams(client.channels).getAll("channel"),
    onRequest: () => countRequest(client),
    onSubscribed: ifCurrent(() => {
      if (client.isCut) happened.reconnects += 1;
      client.isCut = false;
      isSubscribed(client);
    }),
    onData: ifCurrent((data) => deliver(client, data, performance.now())),
    onCut: ifCurrent((why) => {
      note(why);
      client.isCut = true;
      client.isSubscribed = false;
      client.openedAt = performance.now();
    }),
    onClosed: ifCurrent((why) => {
      client.turn += 1;
      isCut(client, why);
    }),
  });
  if (setup.transport !== "polling" || client.isTimed) return;
  client.isTimed = true;
  askAtInterval(client, () => client.connection.ask());
}

function url(client, path, more = "") {
  const after = client.cursor ? `&after=${encodeURIComponent(client.cursor)}` : "";
  return `${setup.target}${path}?${client.channels}${more}${after}`;
}

/** Without a cache: a browser makes requests of one address wait for each other, for the first may be kept. */
async function get(client, address) {
  countRequest(client);
  const response = await fetch(address, { cache: "no-store" });
  if (!response.ok) throw new Error(`${new URL(address).pathname} answered ${response.status} ${await response.text()}`);
  return response;
}

function openSocket(client, more, onText) {
  countRequest(client);
  const socket = new WebSocket(url(client, "/ws", more).replace(/^http/, "ws"));
  client.socket = socket;
  socket.onmessage = (event) => {
    const now = performance.now();
    onText(JSON.parse(event.data), now);
    isSubscribed(client);
  };
  socket.onclose = (event) => isCut(client, `the WebSocket was closed with ${event.code}`);
  return socket;
}

/** Asks once; a client that has just connected is answered at once. */
async function poll(client, wait) {
  client.isAsking = true;
  try {
    const response = await get(client, url(client, "/poll", wait > 0 ? `&wait=${wait}` : ""));
    const text = await response.text();
    const now = performance.now();
    for (const frame of JSON.parse(text)) take(client, frame, now);
    isSubscribed(client);
    if (setup.users) await (await get(client, `${setup.target}/poll?channel=${setup.users}`)).text();
  } finally {
    client.isAsking = false;
  }
}

/** At the client's instants, as far as the browser keeps them: each once, though a timer may fire a little early. */
function askAtInterval(client, ask, last = -1) {
  const every = setup.poll_every_ms;
  const first = setup.poll_from_ms + (client.number * every) / setup.poll_of;
  const now = performance.now();
  const turn = Math.max(last + 1, Math.floor((now - first) / every) + 1);
  setTimeout(
    () => {
      askAtInterval(client, ask, turn);
      if (client.isSubscribed && !client.isAsking) ask();
    },
    first + turn * every - now,
  );
}

const openers = {
  websocket(client) {
    openSocket(client, "", (frame, now) => take(client, frame, now));
  },

  sse(client) {
    countRequest(client);
    const source = new EventSource(url(client, "/sse"));
    source.onopen = () => isSubscribed(client);
    source.onmessage = (event) => {
      const now = performance.now();
      client.cursor = event.lastEventId;
      take(client, JSON.parse(event.data), now);
    };
    source.onerror = () => {
      // By itself it opens again only what was cut, and after seconds.
      source.close();
      isCut(client, "the event stream was cut");
    };
  },

  async "http-streaming"(client) {
    try {
      const response = await get(client, url(client, "/stream"));
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      for (let rest = ""; ; ) {
        const { done, value } = await reader.read();
        const now = performance.now();
        if (done) throw new Error("the stream ended");
        const lines = (rest + value).split("\n");
        rest = lines.pop();
        for (const line of lines) take(client, JSON.parse(line), now);
        isSubscribed(client);
      }
    } catch (error) {
      isCut(client, error);
    }
  },

  async "long-polling"(client) {
    try {
      await poll(client, 0);
      for (;;) await poll(client, setup.wait_s);
    } catch (error) {
      isCut(client, error);
    }
  },

  polling(client) {
    const ask = () => poll(client, 0).catch((error) => isCut(client, error));
    ask();
    if (client.isTimed) return;
    client.isTimed = true;
    askAtInterval(client, ask);
  },

  "websocket-polling"(client) {
    const ask = () => {
      client.isAsking = true;
      client.socket.send(JSON.stringify(["poll", client.cursor]));
    };
    const socket = openSocket(client, "&mode=poll", (frames, now) => {
      const isReply = Array.isArray(frames[0]);
      if (isReply) client.isAsking = false;
      for (const frame of isReply ? frames : [frames]) take(client, frame, now);
    });
    socket.onopen = ask;
    if (client.isTimed) return;
    client.isTimed = true;
    askAtInterval(client, ask);
  },
};

/** One POST of a client at a time, so that its publications keep their order. */
async function post(client, publication) {
  client.isPosting = true;
  const { sends_echoes: isEcho, target } = setup;
  const address = `${target}${isEcho ? "/echo" : `/publish?channel=${publication.channel}`}`;
  countRequest(client);
  try {
    const response = await fetch(address, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: publication.data,
    });
    const text = await response.text();
    const now = performance.now();
    if (!response.ok) note(`${new URL(address).pathname} answered ${response.status} ${text}`, happened.refused);
    else if (isEcho) deliver(client, JSON.parse(text), now);
  } catch (error) {
    note(error);
  }
  client.isPosting = false;
  client.freeAt = performance.now();
  flush(client);
}

/** Sends with the framework's client. Where that is a promise, the next waits for it, so that the order is kept. */
async function sendWithFramework(client, { channel, data }) {
  client.isPosting = true;
  try {
    await (setup.sends_echoes ? client.connection.echo(data) : client.connection.publish(channel, data));
  } catch (error) {
    note(error);
  }
  client.isPosting = false;
  client.freeAt = performance.now();
  flush(client);
}

function flushWithFramework(client) {
  while (client.queue.length > 0 && client.isSubscribed && !client.isPosting) {
    const publication = client.queue.shift();
    happened.published.push([publication.number, performance.now(), client.freeAt]);
    sendWithFramework(client, publication);
  }
}

function flush(client) {
  if (setup.framework) return flushWithFramework(client);
  const isSocket = setup.transport.startsWith("websocket");
  const canSend = () => (isSocket ? client.isSubscribed && client.socket.readyState === 1 : !client.isPosting);
  while (client.queue.length > 0 && canSend()) {
    const publication = client.queue.shift();
    happened.published.push([publication.number, performance.now(), client.freeAt]);
    const { channel, data } = publication;
    if (!isSocket) post(client, publication);
    else client.socket.send(setup.sends_echoes ? `["echo",${data}]` : `["pub",${JSON.stringify(channel)},${data}]`);
  }
}

function publishDue() {
  while (schedule.length > 0 && schedule[0].due_ms <= performance.now()) {
    const publication = schedule.shift();
    const client = clients.get(publication.client);
    client.queue.push(publication);
    flush(client);
  }
  clearTimeout(timer);
  if (schedule.length > 0) timer = setTimeout(publishDue, Math.ceil(schedule[0].due_ms - performance.now()));
}

function begin() {
  for (const [number, channels] of setup.clients) {
    const client = { number, channels, cursor: "", attempts: 0, queue: [], freeAt: 0 };
    clients.set(number, client);
    setTimeout(() => open(client), number * setup.connect_every_ms);
  }
}

async function report() {
  let subscribed = 0;
  for (const client of clients.values()) subscribed += client.isSubscribed ? 1 : 0;
  const body = JSON.stringify({ ...happened, subscribed, hidden: document.hidden });
  happened = nothing();
  const sent = performance.now();
  const response = await fetch(`/report?page=${page}&sent=${sent}&answered=${answered}`, { method: "POST", body });
  answered = performance.now();
  const answer = await response.json();
  if (answer.setup) {
    setup = answer.setup;
    begin();
  }
  if (answer.publish.length > 0) {
    schedule.push(...answer.publish);
    publishDue();
  }
  if (answer.again_ms > 0) setTimeout(report, answer.again_ms);
  else report();
}

document.addEventListener("visibilitychange", () => {
  happened.visibility_changes += 1;
});
addEventListener("error", (event) => note(event.message));
addEventListener("unhandledrejection", (event) => note(event.reason));
report();
