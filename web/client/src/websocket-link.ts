import { PushlabError } from "./errors.ts";
import { badFrame, type Frame, MAX_TEXT_LENGTH, readFrame, readJson } from "./frames.ts";
import { endOf, type Link, type LinkContext, type LinkEnd, type Socket } from "./link.ts";

/** Requests without an answer; with the bytes below, 1 MiB waits at worst beside what the socket took. */
const MAX_PENDING = 1024;
const MAX_BUFFERED_BYTES = 2 ** 20;

/** Close codes of docs/codes.md that say nothing about the transport: the server's doing. */
const SERVER_CLOSES = [1001, 1011, 1012, 1013, 4001, 4003];
/** Those of them that ask for a wait, and how long it is in milliseconds. */
const CLOSES_TO_WAIT = [1012, 1013, 4003];
const CLOSE_WAIT = 5_000;

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
  #timer: ReturnType<typeof setTimeout> | undefined;
  #isOver = false;

  constructor(context: LinkContext, socket: Socket) {
    this.#context = context;
    this.#socket = socket;
    socket.addEventListener("message", (event) => this.#take(event.data));
    socket.addEventListener("error", () => {});
    socket.addEventListener("close", ({ code, reason }) => {
      const wasServer = SERVER_CLOSES.includes(code);
      this.#end({
        ...endOf(undefined, `closed with ${code} ${reason}`.trim()),
        blames: !wasServer,
        retryAfter: CLOSES_TO_WAIT.includes(code) ? CLOSE_WAIT : 0,
      });
    });
  }

  request(frame?: string): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const socket = this.#socket;
      if (this.#pending.length >= MAX_PENDING || socket.bufferedAmount > MAX_BUFFERED_BYTES) {
        return reject(new PushlabError("busy", "the connection is behind; nothing was sent"));
      }
      if (frame !== undefined) socket.send(frame);
      socket.send(`["ping",${this.#first + this.#pending.length}]`);
      this.#pending.push({ sentAt: Date.now(), resolve, reject });
      this.#watch();
    });
  }

  close(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    clearTimeout(this.#timer);
    this.#socket.close();
    const error = new PushlabError("connection-lost", "the connection ended before the answer");
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
    if (this.#timer !== undefined || oldest === undefined) return;
    const left = oldest.sentAt + this.#context.timing.request - Date.now();
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      if (this.#pending[0] === oldest) {
        this.#end(endOf(undefined, "a ping was not answered"));
      } else {
        this.#watch();
      }
    }, left);
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
    if (frame[0] === "error" && request) {
      request.error = new PushlabError(frame[1], frame[2]);
    } else if (frame[0] === "echo" && request) {
      request.value = frame[1];
    } else if (frame[0] === "pong") {
      if (!request || frame[1] !== this.#first) throw badFrame("a pong to no ping");
      this.#pending.shift();
      this.#first++;
      this.#context.ponged(Date.now() - request.sentAt);
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
  const address = context.address("ws").replace(/^http/, "ws");
  try {
    if (!context.WebSocket) throw new Error("there are no WebSockets here");
    return new WebSocketLink(context, new context.WebSocket(address));
  } catch (error) {
    let isOver = false;
    queueMicrotask(() => isOver || context.ended(endOf(error)));
    return {
      close: () => {
        isOver = true;
      },
    };
  }
}
