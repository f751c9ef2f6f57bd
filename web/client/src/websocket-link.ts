import { FINAL_CLOSES } from "./codes.ts";
import { PushlabError } from "./errors.ts";
import { badFrame, type Frame, MAX_TEXT_LENGTH, readFrame, readJson } from "./frames.ts";
import { run } from "./http-links.ts";
import { endOf, type Link, type LinkContext, type LinkEnd, type Socket } from "./link.ts";
import { startDeadline } from "./timing.ts";

/** Requests without an answer; with the bytes below, 1 MiB waits at worst beside what the socket took. */
const MAX_PENDING = 1024;
const MAX_BUFFERED_BYTES = 2 ** 20;

/** Close codes of docs/codes.md that say nothing about the transport, the server's doing, and the milliseconds that they
 * ask to wait. */
const SERVER_CLOSES: Readonly<Record<number, number>> = {
  1001: 0,
  1011: 0,
  1012: 5_000,
  1013: 5_000,
  4001: 0,
  4003: 5_000,
};

interface Pending {
  readonly sentAt: number;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: PushlabError) => void;
  value?: unknown;
  error?: PushlabError;
}

/**
 * A WebSocket. The protocol acknowledges no publication, but answers in order: so each request is followed by a ping,
 * an error before its pong is the request's, and a pong without one means that it was accepted.
 */
class WebSocketLink implements Link {
  readonly #context: LinkContext;
  readonly #socket: Socket;
  #pending: Pending[] = [];
  /** The number of the first pending ping. */
  #first = 0;
  #stopTimer: (() => void) | undefined;
  #isOver = false;

  constructor(context: LinkContext, socket: Socket) {
    this.#context = context;
    this.#socket = socket;
    socket.addEventListener("message", (event) => this.#take(event.data));
    socket.addEventListener("error", () => {});
    socket.addEventListener("close", ({ code, reason }) => {
      const wait = SERVER_CLOSES[code];
      const name = FINAL_CLOSES[code];
      this.#end({
        ...endOf(name && new PushlabError(name, reason), `closed with ${code} ${reason}`.trim()),
        blames: wait === undefined,
        retryAfter: wait ?? 0,
      });
    });
  }

  request(frame?: string): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const socket = this.#socket;
      if (this.#pending.length >= MAX_PENDING || socket.bufferedAmount > MAX_BUFFERED_BYTES) {
        return reject(new PushlabError("busy", "too many wait for an answer"));
      }
      if (frame !== undefined) socket.send(frame);
      socket.send(`["ping",${this.#first + this.#pending.length}]`);
      this.#pending.push({ sentAt: performance.now(), resolve, reject });
      this.#watch();
    });
  }

  close(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#stopTimer?.();
    this.#socket.close();
    const error = new PushlabError("connection-lost", "no answer came");
    for (const { reject } of this.#pending.splice(0)) reject(error);
  }

  #end(end: LinkEnd): void {
    if (this.#isOver) return;
    this.close();
    this.#context.ended(end);
  }

  /** Ends the connection when the oldest request has waited too long. */
  #watch(): void {
    const oldest = this.#pending[0];
    if (this.#stopTimer || oldest === undefined) return;
    const left = oldest.sentAt + this.#context.timing.request - performance.now();
    this.#stopTimer = startDeadline(left, () => {
      this.#stopTimer = undefined;
      if (this.#pending[0] === oldest) {
        this.#end(endOf(undefined, "no answer to a ping"));
      } else {
        this.#watch();
      }
    });
  }

  #take(text: unknown): void {
    if (this.#isOver) return;
    try {
      if (typeof text !== "string") throw badFrame("a binary message");
      if (text.length > MAX_TEXT_LENGTH) throw badFrame("a message too long");
      this.#context.heard();
      const frame = readFrame(readJson(text), text);
      if (frame && !this.#answer(frame)) this.#context.frame(frame);
    } catch (error) {
      this.#end(endOf(error));
    }
  }

  /** Whether the frame was an answer. */
  #answer(frame: Frame): boolean {
    const request = this.#pending[0];
    if (frame[0] === "error" && request && frame[3] === undefined) {
      request.error = new PushlabError(frame[1], frame[2]);
    } else if (frame[0] === "echo" && request) {
      request.value = frame[1];
    } else if (frame[0] === "pong") {
      if (!request || frame[1] !== this.#first) throw badFrame("a pong to no ping");
      this.#pending.shift();
      this.#first++;
      this.#context.ponged(performance.now() - request.sentAt);
      if (request.error) request.reject(request.error);
      else request.resolve(request.value);
    } else {
      return false;
    }
    return true;
  }
}

/** Opens a WebSocket. One that cannot even be made, by the page's policy for example, ends at once. */
export function openWebSocket(context: LinkContext): Link {
  const address = context.address("ws", { v: "2" }).replace(/^http/, "ws");
  try {
    // `connect` leaves the transport out where there is no class of them.
    const { WebSocket } = context as { WebSocket: NonNullable<LinkContext["WebSocket"]> };
    const token = context.tokens?.token;
    // The only field that a page can set.
    const protocols = token ? ["pushlab", `pushlab.token.${token}`] : [];
    return new WebSocketLink(context, new WebSocket(address, protocols));
  } catch (error) {
    return run(context, () => Promise.reject(error));
  }
}
