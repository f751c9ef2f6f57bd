/** Paths of the server that a subscription uses, besides the WebSocket's. */
const OWN_PATHS = ["/sse", "/stream", "/poll", "/publish", "/echo"];
/** Below it the demos are asked for what goes up, but for the time, which is part of a measurement. */
const DEMOS = "/api/demos/";
const TIME = "/api/demos/time";

/** What a connection has cost so far. */
export interface Traffic {
  /** Finished requests of the connection, and of the demo that it belongs to. */
  requests: number;
  /** Bytes of finished requests' answers, as the browser counts them: heads and bodies. */
  requestBytes: number;
  messages: number;
  /** Text of the messages' data, without what the transport puts around it. */
  messageBytes: number;
}

export const NO_TRAFFIC: Traffic = {
  requests: 0,
  requestBytes: 0,
  messages: 0,
  messageBytes: 0,
};

/** What of a resource's timing is looked at. */
export type TimedResource = Pick<PerformanceResourceTiming, "name" | "startTime" | "transferSize">;

/** Adds finished requests that began after `since` (ms, the page's clock); those of the page itself are left out. */
export function addRequests(
  traffic: Traffic,
  resources: readonly TimedResource[],
  origin: string,
  since: number,
): Traffic {
  const next = { ...traffic };
  for (const { name, startTime, transferSize } of resources) {
    if (startTime < since) continue;
    const url = new URL(name, origin);
    const isDemos = url.pathname.startsWith(DEMOS) && url.pathname !== TIME;
    if (url.origin !== origin || !(isDemos || OWN_PATHS.includes(url.pathname))) continue;
    next.requests += 1;
    next.requestBytes += transferSize;
  }
  return next;
}

/** Adds a message by the size of its data as JSON. */
export function addMessage(traffic: Traffic, data: unknown): Traffic {
  return {
    ...traffic,
    messages: traffic.messages + 1,
    messageBytes: traffic.messageBytes + new TextEncoder().encode(JSON.stringify(data)).length,
  };
}
