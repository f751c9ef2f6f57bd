import { addressOf, readBase } from "./address.ts";
import { type State, TypedEventTarget, tell } from "./events.ts";
import { type Frame, readReply } from "./frames.ts";
import { ask, readText } from "./http.ts";
import { endOf } from "./link.ts";
import { followPage, type PageEvents } from "./page.ts";
import { type Connection, type ConnectOptions, connect } from "./pushlab.ts";
import { backoff, TIMING, type Timing, wait } from "./timing.ts";
import { TRANSPORTS, type Transport } from "./transport.ts";

/** What one tab says to the others. */
type Word =
  /** From a tab that came: where are we? */
  | { kind: "hello" }
  /** From the leader, when it changes and as the answer. */
  | {
      kind: "state";
      state: State;
      transport: Transport;
      httpVersion: string | undefined;
      reason: string;
      retryIn: number;
      cursor: string | undefined;
    }
  /** From the leader: what it received. */
  | { kind: "frame"; frame: Frame };

/** The lock manager of browsers, as far as it is used. */
export interface Locks {
  request(
    name: string,
    options: { signal: AbortSignal },
    hold: () => Promise<void>,
  ): Promise<unknown>;
}

/** What a shared connection takes from its surroundings. */
export interface SharedSurroundings {
  readonly page: PageEvents & { location?: { href: string } };
  /** Absent where the page came without TLS from elsewhere than this machine: then, and if they are refused, nothing is
   * shared. */
  readonly locks: Locks | undefined;
}

/**
 * Whether a cursor stands behind another. To anybody else a cursor is opaque; but two tabs that hear one server over
 * different ways must agree on what both have seen. Another epoch is another life of the server, and later.
 */
function isAfter(a: string, b: string | undefined): boolean {
  if (b === undefined) return true;
  const [epoch, offset] = a.split(".");
  const [otherEpoch, otherOffset] = b.split(".");
  return epoch !== otherEpoch || Number(offset) > Number(otherOffset);
}

/**
 * A subscription of several tabs over one connection. The tab that has the lock holds the connection and tells the
 * others what comes; when it goes, another gets the lock and resumes from its own cursor. Each tab has its own cursor
 * and takes nothing that is not behind it. A page that was frozen asks for what it missed by polls of its own.
 *
 * Made by `connectShared`. Its events and properties are those of a `Connection`; its channels are fixed, because only
 * tabs with the same channels share.
 */
export class SharedConnection extends TypedEventTarget {
  readonly #url: string;
  readonly #base: URL;
  readonly #name: string;
  readonly #channels: readonly string[];
  readonly #options: ConnectOptions;
  readonly #timing: Timing;
  readonly #locks: Locks | undefined;
  readonly #stopFollowing: () => void;
  /** The subscription, where this tab leads. */
  #leading: Connection | undefined;
  /** Subscribes to nothing and posts what this tab publishes while another leads. */
  readonly #poster: Connection;
  #state: State = "connecting";
  #transport: Transport;
  #httpVersion: string | undefined;
  #cursor: string | undefined;
  /** Set while this tab takes part; aborted when it leaves. */
  #part: AbortController | undefined;
  #others: BroadcastChannel | undefined;
  /** Where the others are, while this tab has missed something. */
  #target: string | undefined;
  /** Channels that were refused, as their frames; each is told once. */
  readonly #refused = new Map<string, Frame>();
  #isBehind = false;
  #isCatchingUp = false;

  /** @internal */
  constructor(url: string | URL, options: ConnectOptions, surroundings: SharedSurroundings) {
    super();
    const { page, locks } = surroundings;
    this.#base = readBase(url, page.location?.href);
    this.#url = this.#base.href;
    this.#channels = [...new Set(options.channels)].sort();
    this.#options = { ...options, channels: this.#channels };
    this.#name = `pushlab ${this.#url} ${this.#channels.join(" ")}`;
    this.#timing = { ...TIMING, ...options.timing };
    this.#locks = locks;
    this.#cursor = options.after;
    // Wrong options are thrown here, where the caller is.
    connect(this.#url, this.#options).close();
    this.#poster = connect(this.#url, { ...options, channels: [], transport: "polling" });
    this.#transport = typeof options.transport === "string" ? options.transport : TRANSPORTS[0];
    this.#stopFollowing = followPage(page, {
      // The leader's connection sees for itself that there is no network.
      pause: (state) => state === "offline" || this.#leave(),
      resume: () => this.#part || this.#join(),
      shown: () => {},
    });
    queueMicrotask(() => this.#join());
  }

  /** What the shared connection is doing. */
  get state(): State {
    return this.#state;
  }

  /** The transport in use, or the one that will be tried next. */
  get transport(): Transport {
    return this.#transport;
  }

  /** The version of HTTP of the shared connection, as `Connection.httpVersion`. */
  get httpVersion(): string | undefined {
    return this.#httpVersion;
  }

  /** Everything up to here has been delivered to this tab. */
  get cursor(): string | undefined {
    return this.#cursor;
  }

  /** Whether this tab holds the connection. */
  get isLeader(): boolean {
    return this.#leading !== undefined;
  }

  /** Publishes as `Connection.publish` does. */
  publish(channel: string, data: unknown): Promise<void> {
    return (this.#leading ?? this.#poster).publish(channel, data);
  }

  /** Echoes as `Connection.echo` does. */
  echo(data: unknown): Promise<unknown> {
    return (this.#leading ?? this.#poster).echo(data);
  }

  /** Leaves for good. The others go on. */
  close(): void {
    if (this.#state === "closed") return;
    this.#finish("closed by the client");
  }

  #finish(reason: string): void {
    this.#leave();
    this.#stopFollowing();
    this.#poster.close();
    this.#become("closed", reason);
  }

  #join(): void {
    if (this.#state === "closed" || this.#part) return;
    const part = new AbortController();
    this.#part = part;
    try {
      if (this.#locks) this.#others = new BroadcastChannel(this.#name);
    } catch {
      // The page has no origin, as below.
    }
    const others = this.#others;
    if (!this.#locks || !others) {
      this.#lead();
      return;
    }
    this.#isBehind = this.#cursor !== undefined;
    others.onmessage = ({ data }: { data: Word }) => this.#part === part && this.#hear(data);
    this.#say({ kind: "hello" });
    const { signal } = part;
    const hold = () =>
      new Promise<void>((release) => {
        if (signal.aborted) return release();
        signal.addEventListener("abort", () => release());
        this.#lead();
      });
    // It fails when this tab leaves before it leads, and where the page has no origin, as in a sandboxed frame.
    this.#locks.request(this.#name, { signal }, hold).catch(() => {
      if (this.#part === part && !this.#leading) this.#lead();
    });
  }

  /** Gives the lock up, so that another tab leads. */
  #leave(): void {
    const leading = this.#leading;
    this.#leading = this.#httpVersion = undefined;
    leading?.close();
    this.#cursor = leading?.cursor ?? this.#cursor;
    this.#others?.close();
    this.#others = undefined;
    const part = this.#part;
    this.#part = undefined;
    part?.abort();
  }

  #say(word: Word): void {
    this.#others?.postMessage(word);
  }

  #become(state: State, reason: string, retryIn = 0): void {
    this.#state = state;
    const [transport, httpVersion] = [this.#transport, this.#httpVersion];
    tell(this, "state", { state, transport, httpVersion, reason, retryIn });
  }

  #lead(): void {
    this.#isBehind = false;
    const connection = connect(this.#url, { ...this.#options, after: this.#cursor });
    this.#leading = connection;
    const pass = (frame: Frame) => {
      if (this.#leading !== connection) return;
      this.#say({ kind: "frame", frame });
      this.#take(frame);
    };
    connection.addEventListener("message", (event) => {
      pass(["msg", event.channel, event.cursor, event.data]);
    });
    connection.addEventListener("gap", ({ from, to }) => pass(["gap", from, to]));
    connection.addEventListener("refused", ({ channel, code, text }) => {
      pass(["error", code, text, channel]);
    });
    connection.addEventListener("error", ({ code, text }) => pass(["error", code, text]));
    connection.addEventListener("state", ({ state, transport, httpVersion, reason, retryIn }) => {
      if (this.#leading !== connection) return;
      // What the server refused for good, it refuses to the next leader too: each finds out by itself.
      if (state === "closed") {
        this.#finish(reason);
        return;
      }
      const { cursor } = connection;
      this.#say({ kind: "state", state, transport, httpVersion, reason, retryIn, cursor });
      this.#cursor = cursor ?? this.#cursor;
      this.#transport = transport;
      this.#httpVersion = httpVersion;
      this.#become(state, reason, retryIn);
    });
  }

  #hear(word: Word): void {
    if (this.#leading) {
      // What comes late from the leader before comes from the server too.
      if (word.kind !== "hello") return;
      const { state, transport, httpVersion, cursor } = this.#leading;
      const reason = "as before";
      this.#say({ kind: "state", state, transport, httpVersion, reason, retryIn: 0, cursor });
      for (const frame of this.#refused.values()) this.#say({ kind: "frame", frame });
    } else if (word.kind === "frame") {
      const [name, , cursor] = word.frame;
      if (!this.#isBehind || name === "error") this.#take(word.frame);
      else this.#reach(cursor as string);
    } else if (word.kind === "state") {
      const isNew = word.state !== this.#state || word.transport !== this.#transport;
      this.#transport = word.transport;
      this.#httpVersion = word.httpVersion;
      if (word.cursor !== undefined && this.#isBehind) this.#reach(word.cursor);
      this.#cursor ??= word.cursor;
      if (isNew) this.#become(word.state, word.reason, word.retryIn);
    }
  }

  #take(frame: Frame): void {
    const [name] = frame;
    if (name === "error") {
      const [, code, text, channel] = frame;
      if (channel === undefined) {
        tell(this, "error", { code, text });
      } else if (!this.#refused.has(channel)) {
        this.#refused.set(channel, frame);
        tell(this, "refused", { channel, code, text });
      }
    } else if (name === "msg" && isAfter(frame[2], this.#cursor)) {
      const [, channel, cursor, data] = frame;
      this.#cursor = cursor;
      tell(this, "message", { channel, cursor, data });
    } else if (name === "gap" && isAfter(frame[2], this.#cursor)) {
      const [, from, to] = frame;
      this.#cursor = to;
      tell(this, "gap", { from, to });
    } else if (name === "cursor" && isAfter(frame[1], this.#cursor)) {
      this.#cursor = frame[1];
    }
  }

  /** Polls until this tab is where the others are; what they are told meanwhile is among it. */
  async #reach(target: string): Promise<void> {
    if (this.#target === undefined || isAfter(target, this.#target)) this.#target = target;
    if (this.#isCatchingUp) return;
    this.#isCatchingUp = true;
    for (let attempt = 0; this.#isBehind && this.#part && this.#target; ) {
      if (!isAfter(this.#target, this.#cursor)) {
        this.#isBehind = false;
        break;
      }
      const before = this.#cursor;
      const { retryAfter, returnAfter } = endOf(await this.#poll());
      if (this.#cursor === before) {
        const delay = backoff(this.#timing, attempt++, Math.random(), retryAfter, returnAfter);
        if (this.#part) await wait(delay, this.#part.signal);
      }
    }
    this.#target = undefined;
    this.#isCatchingUp = false;
  }

  /** Gives what it failed with. */
  async #poll(): Promise<unknown> {
    const after = { after: this.#cursor ?? "" };
    const address = addressOf(this.#base, "poll", this.#channels, after);
    const signal = this.#part?.signal ?? null;
    try {
      const text = await this.#poster.request(async (environment) => {
        return readText(await ask(environment, address, "application/json", { signal }));
      });
      // A leader meanwhile has a connection that begins at this cursor.
      for (const frame of readReply(text)) if (this.#isBehind) this.#take(frame);
    } catch (error) {
      return error;
    }
    return undefined;
  }
}

/**
 * Connects as `connect` does, over one connection for all tabs of this origin that subscribe to the same channels of
 * the same server. Where browsers offer no locks (pages without TLS) and in Node each has its own connection.
 *
 * Throws what `connect` throws.
 */
export function connectShared(url: string | URL, options: ConnectOptions = {}): SharedConnection {
  const page = globalThis as unknown as PageEvents;
  const { locks } = (globalThis.navigator ?? {}) as { locks?: Locks };
  return new SharedConnection(url, options, { page, locks });
}
