import { addRequests, NO_TRAFFIC, type TimedResource } from "../live/traffic";
import type { Finding } from "./finding";

export type Counted = Pick<Finding, "requests" | "bytes_received" | "bytes_sent">;

/** A WebSocket as it is counted. */
interface SocketCount {
  upgrades: number;
  sent: number;
  received: number;
}

/** Bytes of a frame around a text of so many bytes (RFC 6455, section 5.2); what a browser sends is masked. */
export function frameBytes(text: number, isMasked: boolean): number {
  const length = text < 126 ? 2 : text < 65_536 ? 4 : 10;
  return text + length + (isMasked ? 4 : 0);
}

/** A class of WebSockets that counts the frames of text of all that are made of it. */
export function countingWebSocket(count: SocketCount, Base: typeof WebSocket): typeof WebSocket {
  const size = (text: unknown) => new TextEncoder().encode(`${text}`).length;
  return class extends Base {
    constructor(url: string | URL, protocols: string | string[] = []) {
      super(url, protocols);
      count.upgrades++;
      this.addEventListener("message", ({ data }) => {
        count.received += frameBytes(size(data), false);
      });
    }

    override send(text: string): void {
      count.sent += frameBytes(size(text), true);
      super.send(text);
    }
  };
}

/** Paths of answers that never end by themselves. */
const STREAMS = ["/sse", "/stream"];

/** A `fetch` that tells how many bytes came of the bodies of streams. */
export function countingFetch(came: (bytes: number) => void, base: typeof fetch): typeof fetch {
  return async (input, init) => {
    const response = await base(input, init);
    const isStream = STREAMS.includes(new URL(response.url).pathname);
    if (!isStream || response.body === null) return response;
    const counted = response.body.pipeThrough(
      new TransformStream<Uint8Array, Uint8Array>({
        transform(bytes, controller) {
          came(bytes.byteLength);
          controller.enqueue(bytes);
        },
      }),
    );
    const { status, headers } = response;
    return new Response(counted, { status, headers });
  };
}

/** Time for the browser to tell of the requests that have just ended, in milliseconds. */
const SETTLE = 200;

/** A request as timed, without the body of a stream, which is counted as it comes. */
function withoutStream(resource: PerformanceResourceTiming): TimedResource {
  const { name, startTime, transferSize, encodedBodySize } = resource;
  const isStream = STREAMS.includes(new URL(name).pathname);
  return { name, startTime, transferSize: transferSize - (isStream ? encodedBodySize : 0) };
}

/** Counts what one transport costs, from now on. Transports are measured one after another. */
export class TransportCost {
  readonly #since = performance.now();
  #streamed = 0;
  readonly #sockets: SocketCount = { upgrades: 0, sent: 0, received: 0 };
  readonly #observer = new PerformanceObserver((list) => this.#add(list.getEntries()));
  #requests = NO_TRAFFIC;

  /** What requests are made with. Chromium does not tell the size of a stream that was not read to its end. */
  readonly fetch = countingFetch(
    (bytes) => {
      this.#streamed += bytes;
    },
    (input, init) => globalThis.fetch(input, init),
  );

  /** The class of WebSockets that are counted. */
  readonly WebSocket = countingWebSocket(this.#sockets, globalThis.WebSocket);

  constructor() {
    this.#observer.observe({ type: "resource" });
  }

  /** What it has been, once the connection is closed. What the browser does not tell is left out. */
  async count(): Promise<Counted> {
    await new Promise((resolve) => setTimeout(resolve, SETTLE));
    this.#add(this.#observer.takeRecords());
    const { upgrades, sent, received } = this.#sockets;
    const { requests, requestBytes } = this.#requests;
    return {
      requests: requests + upgrades,
      bytes_received: requestBytes + this.#streamed + received,
      ...(upgrades > 0 && requests === 0 ? { bytes_sent: sent } : {}),
    };
  }

  /** Stops counting. */
  end(): void {
    this.#observer.disconnect();
  }

  #add(entries: PerformanceEntryList): void {
    const resources = (entries as PerformanceResourceTiming[]).map(withoutStream);
    this.#requests = addRequests(this.#requests, resources, location.origin, this.#since);
  }
}
