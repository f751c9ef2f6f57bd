// A client of the bare dialect, as people write it by hand; crates/dialects/src/bare.rs says what servers answer.

"use strict";

globalThis.framework = {
  connect(client) {
    const { transport, how, channels, publishes_to, sends_echoes, wait_s } = client;
    const base = client.target + client.path;
    const query = channels.map((channel) => `channel=${encodeURIComponent(channel)}`).join("&");
    const { kept } = client;
    kept.after ??= "";
    let isAsking = false;

    /** Without a cache: a browser makes requests of one address wait for each other, for the first may be kept. */
    const get = async (address) => {
      client.onRequest();
      const response = await fetch(address, { cache: "no-store" });
      if (!response.ok) throw new Error(`${address} was answered ${response.status}`);
      return response;
    };

    const poll = async (holds) => {
      isAsking = true;
      try {
        const cursor = kept.after === "" ? "" : `&after=${kept.after}${holds ? `&wait=${wait_s}` : ""}`;
        const response = await get(`${base}/poll?${query}${cursor}`);
        const [next, ...messages] = await response.json();
        kept.after = next;
        messages.forEach(client.onData);
        client.onSubscribed();
        if (client.user_list && cursor !== "") await (await get(`${base}/users`)).text();
      } finally {
        isAsking = false;
      }
    };

    const post = async (address, data, isEcho) => {
      client.onRequest();
      const headers = { "content-type": "application/json" };
      const response = await fetch(address, { method: "POST", headers, body: data });
      if (!response.ok) throw new Error(`${address} was answered ${response.status}`);
      if (isEcho) client.onData(await response.json());
    };

    if (transport === "websocket") {
      const route = sends_echoes ? "/echo" : `?${query}&publish=${encodeURIComponent(publishes_to)}`;
      client.onRequest();
      const socket = new WebSocket(`${base}/ws${how}${route}`.replace(/^http/, "ws"));
      socket.onopen = client.onSubscribed;
      socket.onmessage = ({ data }) => data && client.onData(JSON.parse(data));
      socket.onclose = ({ code }) => client.onClosed(`the WebSocket was closed with ${code}`);
      const publish = (channel, data) => {
        if (channel !== publishes_to) throw new Error(`a WebSocket that publishes to ${publishes_to}, not to ${channel}`);
        socket.send(data);
      };
      return { publish, echo: (data) => socket.send(data) };
    }

    const loops = {
      sse() {
        client.onRequest();
        const source = new EventSource(`${base}/sse?${query}`);
        source.onopen = client.onSubscribed;
        source.onmessage = ({ data }) => client.onData(JSON.parse(data));
        source.onerror = () => {
          // By itself it opens again only what was cut, and after seconds.
          source.close();
          client.onClosed("the event stream was cut");
        };
      },

      async "http-streaming"() {
        const response = await get(`${base}/stream?${query}`);
        client.onSubscribed();
        const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
        for (let rest = ""; ; ) {
          const { done, value } = await reader.read();
          if (done) throw new Error("the stream ended");
          const lines = (rest + value).split("\n");
          rest = lines.pop();
          for (const line of lines) if (line) client.onData(JSON.parse(line));
        }
      },

      async "long-polling"() {
        await poll(false);
        for (;;) await poll(true);
      },

      polling: () => poll(false),
    };
    Promise.resolve(loops[transport]()).catch(client.onClosed);
    return {
      publish: (channel, data) => post(`${base}/publish?channel=${encodeURIComponent(channel)}`, data, false),
      echo: (data) => post(`${base}/echo`, data, true),
      /** At an interval, for `polling`. */
      ask: () => isAsking || poll(false).catch(client.onClosed),
    };
  },
};
