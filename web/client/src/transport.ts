/** The transports, best first. */
export const TRANSPORTS = [
  "websocket",
  "sse",
  "http-streaming",
  "long-polling",
  "polling",
] as const;

/** The way bytes travel. */
export type Transport = (typeof TRANSPORTS)[number];
