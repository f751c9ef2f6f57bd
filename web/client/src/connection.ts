import { addressOf } from "./address.ts";
import { FINAL_CODES, WAY_CODES } from "./codes.ts";
import { PushlabError } from "./errors.ts";
import { type State, TypedEventTarget, tell } from "./events.ts";
import { type Frame, readJson } from "./frames.ts";
import { post } from "./http.ts";
import { openEventStream, openLines, openPolls } from "./http-links.ts";
import { type Environment, endOf, type Link, type LinkContext, type LinkEnd } from "./link.ts";
import { followPage, type PageEvents } from "./page.ts";
import { Policy } from "./policy.ts";
import { findRefused, isAboutChannels } from "./refusals.ts";
import { backoff, startDeadline, startTimer } from "./timing.ts";
import { isTokenRefusal, type Tokens } from "./token.ts";
import type { Transport } from "./transport.ts";
import { openWebSocket } from "./websocket-link.ts";

/** Channels of a connection; the server takes no more. */
const MAX_CHANNELS = 64;
/** Posts without an answer; of 64 KiB each where the server is to accept them. */
const MAX_POSTS = 256;
/** Longer publications are posted, where the server says what is wrong with one that is too long: on a WebSocket it
 * would end the connection. In UTF-16 units, each of which is 3 bytes at most. */
const MAX_SOCKET_LENGTH = 16_384;
/** A token that was good for so many milliseconds may expire and nothing is wrong: issuers count whole seconds. */
const MIN_TOKEN_LIFE = 1_000;
/** Shortest heartbeat that is gone by, in milliseconds: the server's clock has steps of 100, and the way takes time. */
const MIN_HEARTBEAT = 500;

/** What a connection is made from, checked. */
export interface ConnectionConfig {
  readonly base: URL;
  readonly channels: Iterable<string>;
  readonly cursor: string | undefined;
  readonly transports: readonly Transport[];
  readonly environment: Environment;
  readonly page: PageEvents;
}

/**
 * A subscription to channels that outlives connections. Each message comes once, in the order of publication; where
 * some are gone, a `gap` comes first. Made by `connect`.
 */
export class Connection extends TypedEventTarget {
  readonly #base: URL;
  readonly #environment: Environment;
  readonly #policy: Policy;
  readonly #channels = new Set<string>();
  readonly #posts = new Set<AbortController>();
  readonly #stopFollowing: () => void;
  #state: State = "connecting";
  #cursor: string | undefined;
  #httpVersion: string | undefined;
  #latency: number | undefined;
  #link: Link | undefined;
  /** A transport that is tried, or a search for refused channels, beside the link. */
  #probe: Link | undefined;
  #heardAt = 0;
  /** Pings since then. */
  #pings = 0;
  /** Milliseconds between two heartbeats of the server. */
  #heartbeat = 0;
  #isPaused = false;
  /** Whether nothing is subscribed to, on a transport that must name something. */
  #isIdle = false;
  #isReopening = false;
  /** The token that the server has from the link. */
  #shownToken: string | undefined;
  /** Whether a refused token was followed at once by another, and no connection has lived for long since. */
  #isSecondToken = false;
  #openedAt = 0;
  /** Rises whenever everything under way is given up: what an earlier turn still waits for is ignored. */
  #turn = 0;
  /** Milliseconds after which the server asked to come back. */
  #returnAfter: number | undefined;
  /** For the next attempt, for the first bytes, or for silence. */
  #stopTimer: (() => void) | undefined;
  #stopClimb: (() => void) | undefined;
  #stopRenewal: (() => void) | undefined;

  /** @internal */
  constructor(config: ConnectionConfig) {
    super();
    this.#base = config.base;
    this.#environment = config.environment;
    this.#policy = new Policy(config.transports, config.environment.timing, Math.random);
    this.#cursor = config.cursor;
    for (const channel of config.channels) this.#add(channel);
    this.#stopFollowing = followPage(config.page, {
      pause: (state, reason) => this.#pause(state, reason),
      resume: () => this.#resume(),
      shown: () => this.#shown(),
    });
    // Later, so that the first change of state finds its listeners.
    queueMicrotask(() => this.#start("a new connection"));
  }

  /** What the connection is doing. */
  get state(): State {
    return this.#state;
  }

  /** The transport in use, or the one that will be tried next. */
  get transport(): Transport {
    return this.#policy.transport;
  }

  /**
   * The version of HTTP in which the server was asked: `1.1`, `2`; undefined while nothing is open, over polls, and with
   * a server that does not say.
   */
  get httpVersion(): string | undefined {
    return this.#httpVersion;
  }

  /** Everything up to here has been delivered; undefined before the first connection. Give it to `connect` as `after`. */
  get cursor(): string | undefined {
    return this.#cursor;
  }

  /** The channels subscribed to. */
  get channels(): readonly string[] {
    return [...this.#channels];
  }

  /** Milliseconds that the latest ping took there and back; undefined before one, and without a WebSocket. */
  get latency(): number | undefined {
    return this.#latency;
  }

  /**
   * Publishes a JSON value; resolves when the server has accepted it. Over the WebSocket where that is in use, else by
   * POST. Await one publication before the next where their order matters.
   *
   * Rejects with a `PushlabError`: a code of the server, or `busy`, `closed`, `connection-lost`, `no-token`, `refused`,
   * `timeout`, `unreachable`.
   */
  async publish(channel: string, data: unknown): Promise<void> {
    checkChannel(channel);
    const json = writeJson(data);
    await this.#send(`["pub","${channel}",${json}]`, "publish", { channel }, json);
  }

  /**
   * Sends a JSON value and gives it back as the server echoed it. Rejects as `publish` does.
   */
  async echo(data: unknown): Promise<unknown> {
    const json = writeJson(data);
    return this.#send(`["echo",${json}]`, "echo", {}, json);
  }

  /**
   * Subscribes to another channel, from now on. Over HTTP the stream or poll is opened anew with the latest cursor, and
   * messages of the channel that were published since then come too. If the server refuses it, a `refused` event says
   * so.
   *
   * @throws PushlabError `bad-channel`, `too-many-channels`
   */
  subscribe(channel: string): void {
    if (!this.#channels.has(channel) && this.#add(channel)) this.#changed("sub", channel);
  }

  /** Unsubscribes from a channel; what is on its way may still come. */
  unsubscribe(channel: string): void {
    if (this.#channels.delete(channel)) this.#changed("unsub", channel);
  }

  /** Ends the connection for good. Publications without an answer are rejected. */
  close(): void {
    this.#finish("closed by the client");
  }

  /** Makes a request as the connection makes its own, with its token. @internal */
  request<T>(make: (environment: Environment) => Promise<T>): Promise<T> {
    const { tokens } = this.#environment;
    return tokens ? tokens.use(() => make(this.#environment)) : make(this.#environment);
  }

  #start(reason: string): void {
    this.#leave();
    if (this.#state === "closed" || this.#isPaused) return;
    const { transport } = this.#policy;
    this.#isIdle = transport !== "websocket" && this.#channels.size === 0;
    if (this.#isIdle) {
      this.#become("waiting", "no channel");
      return;
    }
    const turn = this.#turn;
    this.#become("connecting", reason);
    // A listener may have closed it.
    if (turn !== this.#turn) return;
    const { tokens } = this.#environment;
    if (!tokens?.isMissing) {
      this.#attempt(transport);
      return;
    }
    tokens.renew().then(
      () => turn === this.#turn && this.#attempt(transport),
      (error) => turn === this.#turn && this.#ended({ ...endOf(error), blames: false }),
    );
  }

  #attempt(transport: Transport): void {
    this.#policy.attempt();
    this.#shownToken = this.#environment.tokens?.token;
    this.#heartbeat = this.#environment.timing.heartbeat;
    const link: Link = this.#open(transport, () => this.#cursor, {
      heard: () => {
        this.#heardAt = performance.now();
        this.#pings = 0;
      },
      frame: (frame) => this.#link === link && this.#take(frame),
      ended: (end) => this.#link === link && this.#ended(end),
    });
    this.#link = link;
    const { open } = this.#policy;
    this.#stopTimer = startDeadline(open, () => this.#lost(`no bytes within ${open} ms`));
  }

  #open(
    transport: Transport,
    after: () => string | undefined,
    handlers: Pick<LinkContext, "heard" | "frame" | "ended">,
  ): Link {
    const context: LinkContext = {
      ...this.#environment,
      ...handlers,
      address: (path, parameters = {}) => {
        return addressOf(this.#base, path, this.#channels, { ...parameters, after: after() });
      },
      ponged: (latency) => {
        this.#latency = latency;
      },
    };
    switch (transport) {
      case "websocket":
        return openWebSocket(context);
      case "sse":
        return openEventStream(context);
      case "http-streaming":
        return openLines(context);
      default:
        return openPolls(context, transport === "long-polling" ? this.#policy.held : 0);
    }
  }

  #take(frame: Frame): void {
    const [name] = frame;
    if (name === "server") {
      this.#heartbeat = Math.max(MIN_HEARTBEAT, frame[1].heartbeat_ms);
      this.#httpVersion = frame[1].http;
      return;
    }
    if (name === "reconnect") {
      this.#returnAfter = frame[1];
      return;
    }
    // Before all else: whoever hears that it is open may ask for the cursor.
    if (name === "cursor") this.#cursor = frame[1];
    if (this.#state !== "open" && name !== "error") {
      this.#opened();
      // A listener may have closed it.
      if (!this.#link) return;
    }
    if (name === "msg") {
      const [, channel, cursor, data] = frame;
      this.#cursor = cursor;
      if (this.#channels.has(channel)) tell(this, "message", { channel, cursor, data });
    } else if (name === "gap") {
      const [, from, to] = frame;
      this.#cursor = to;
      tell(this, "gap", { from, to });
    } else if (name === "token-expires") {
      this.#expires(frame[1] * 1000);
    } else if (name === "error") {
      const error = new PushlabError(frame[1], frame[2]);
      if (frame[3] !== undefined) this.#refused(frame[3], error);
      else if (FINAL_CODES.includes(error.code)) this.#ended(endOf(error));
      else this.#fail(error);
    }
  }

  #refused(channel: string, { code, message: text }: PushlabError): void {
    if (this.#channels.delete(channel)) tell(this, "refused", { channel, code, text });
  }

  #opened(): void {
    this.#openedAt = performance.now();
    this.#policy.opened(this.#openedAt);
    this.#watch();
    this.#planClimb();
    this.#become("open", "the server answers");
  }

  #ended(end: LinkEnd): void {
    const { error, reason } = end;
    const code = error?.code;
    const withToken = this.#comeback(error);
    const isAboutSome = !this.#link?.request && isAboutChannels(error, this.channels);
    const isFinal = withToken
      ? withToken === "never"
      : (FINAL_CODES.includes(code) && !isAboutSome) ||
        (WAY_CODES.includes(code) && !this.#policy.below.length);
    this.#leave();
    const turn = this.#turn;
    // What the server says of a token or a channel, it says over every transport.
    const blames = end.blames && !withToken && !isAboutSome;
    const returnAfter = this.#returnAfter ?? end.returnAfter;
    const delay = this.#policy.ended(performance.now(), { ...end, blames, returnAfter });
    this.#returnAfter = undefined;
    // The next failure is still the first.
    if (withToken === "at once") this.#policy.refresh();
    if (error && (isFinal || code === "bad-frame")) this.#fail(error);
    if (isFinal) this.#finish(reason);
    // A listener may have closed it.
    if (turn !== this.#turn) return;
    if (error && isAboutSome) this.#leaveOut(error, delay);
    else this.#retry(reason, withToken === "at once" ? 0 : delay);
  }

  #retry(reason: string, delay: number): void {
    if (delay === 0) {
      this.#start(reason);
      return;
    }
    this.#stopTimer = startTimer(delay, () => this.#start(reason));
    this.#become("waiting", reason, delay);
  }

  /** Finds the channels that the server refuses, and goes on without them. */
  async #leaveOut(error: PushlabError, delay: number): Promise<void> {
    const { reason } = endOf(error);
    const turn = this.#turn;
    this.#become("connecting", reason);
    const controller = new AbortController();
    this.#probe = { close: () => controller.abort() };
    const { channels } = this;
    const refused = await findRefused(this.#environment, this.#base, channels, error, controller);
    // A listener may close it.
    for (const [channel, why] of refused) if (turn === this.#turn) this.#refused(channel, why);
    if (turn === this.#turn) this.#retry(reason, refused.length > 0 ? 0 : delay);
  }

  /** When to try again with another token; undefined if the connection did not end because of the token. */
  #comeback(error: PushlabError | undefined): "at once" | "later" | "never" | undefined {
    const { tokens, timing } = this.#environment;
    const wasOpen = this.#state === "open";
    const life = wasOpen ? performance.now() - this.#openedAt : 0;
    if (life >= timing.shortLife) this.#isSecondToken = false;
    if (!isTokenRefusal(error)) {
      if (!error && !wasOpen && this.transport === "websocket") tokens?.doubt(this.#isSecondToken);
      return undefined;
    }
    if (!tokens) return undefined;
    tokens.refuse(tokens.token);
    const hasExpired = error.code === "token-expired";
    const isSecond = this.#isSecondToken && !(hasExpired && life >= MIN_TOKEN_LIFE);
    this.#isSecondToken = true;
    if (!isSecond) return "at once";
    return wasOpen || hasExpired ? "later" : "never";
  }

  /**
   * The token expires in so many milliseconds. A young one is kept until half of its life is over: tokens that live
   * shorter than the server's warning would otherwise be renewed as soon as they come.
   */
  #expires(left: number): void {
    const { tokens } = this.#environment;
    if (tokens) this.#renewIn(Math.max(0, (left - tokens.age) / 2), 0, tokens);
  }

  #renewIn(delay: number, attempt: number, tokens: Tokens): void {
    const turn = this.#turn;
    const again = () => {
      if (turn !== this.#turn) return;
      const { timing } = this.#environment;
      this.#renewIn(backoff(timing, attempt, Math.random()), attempt + 1, tokens);
    };
    this.#stopRenewal?.();
    this.#stopRenewal = startTimer(delay, () => {
      tokens.renew().then(() => turn === this.#turn && this.#show(tokens.token, again), again);
    });
  }

  /** Goes on with another token. If it is the same, the server ends the connection when that expires. */
  #show(token: string | undefined, again: () => void): void {
    if (token === this.#shownToken) return;
    const link = this.#link;
    if (!link?.request) {
      this.#start("another token");
      return;
    }
    this.#shownToken = token;
    link.request(`["auth","${token}"]`).catch((error) => {
      if (this.#link !== link) return;
      // It is somebody else's.
      if (error.code === "forbidden") this.#start(endOf(error).reason);
      // A server without an access file takes none, and does not end the connection either.
      else if (error.code !== "bad-frame") again();
    });
  }

  /** The link says nothing, or not what it should. */
  #lost(reason: string): void {
    this.#ended(endOf(undefined, reason));
  }

  #finish(reason: string): void {
    if (this.#state === "closed") return;
    this.#leave();
    this.#stopFollowing();
    this.#environment.tokens?.close();
    for (const post of this.#posts) post.abort(closed());
    this.#become("closed", reason);
  }

  /** Lets go of the link, and of everything that was to happen to it. */
  #leave(): void {
    this.#stopTimer?.();
    this.#stopClimb?.();
    this.#stopRenewal?.();
    this.#turn++;
    this.#probe?.close();
    this.#probe = undefined;
    // First forgotten, then closed: what it still tells is nobody's.
    const link = this.#link;
    this.#link = this.#httpVersion = undefined;
    link?.close();
  }

  #become(state: State, reason: string, retryIn = 0): void {
    this.#state = state;
    tell(this, "state", {
      state,
      transport: this.transport,
      httpVersion: this.httpVersion,
      reason,
      retryIn,
    });
  }

  #fail({ code, message: text }: PushlabError): void {
    tell(this, "error", { code, text });
  }

  /** A server that beats slower than the client pings is waited for, but pinged all the same. */
  #watch(interval = Math.min(this.#heartbeat, this.#environment.timing.heartbeat)): void {
    this.#stopTimer?.();
    this.#stopTimer = startDeadline(interval / 2, () => {
      this.#check(interval);
      if (this.#state === "open") this.#watch();
    });
  }

  /** Pings after so many milliseconds of silence, and gives the link up where there were too many. */
  #check(interval: number): void {
    const silence = performance.now() - this.#heardAt;
    // Heartbeats of a WebSocket do not show: it had time to answer a ping, however late the timer is.
    const isSure = !interval || this.#pings > 1 || !this.#link?.request;
    if (isSure && silence >= 2 * this.#heartbeat) {
      this.#lost(`silent for ${Math.round(silence)} ms`);
    } else if (silence >= interval) {
      this.#pings++;
      // The link itself notices a pong that does not come.
      this.#link?.request?.().catch(() => {});
    }
  }

  #pause(state: "offline" | "waiting", reason: string): void {
    if (this.#state === "closed") return;
    this.#isPaused = true;
    this.#leave();
    this.#become(state, reason);
  }

  #resume(): void {
    if (this.#isPaused || this.#state === "waiting") {
      this.#isPaused = false;
      this.#policy.refresh();
      this.#start("the page goes on");
    }
  }

  #shown(): void {
    if (this.#state === "waiting") {
      this.#resume();
      return;
    }
    if (this.#state !== "open") return;
    // Timers of a hidden page are late, and those of a sleeping machine stood still.
    this.#watch(0);
  }

  #planClimb(): void {
    const delay = this.#policy.climbDelay(performance.now());
    if (delay === undefined) return;
    this.#stopClimb = startTimer(delay, () => this.#climb(this.#policy.better));
  }

  /** Tries better transports beside the one in use; the first that lives for the time of its trial takes over. */
  #climb(better: Transport[]): void {
    const transport = better.shift();
    if (transport === undefined) {
      this.#policy.climbFailed();
      this.#planClimb();
      return;
    }
    const stop = () => {
      this.#stopClimb?.();
      this.#probe = undefined;
      probe.close();
    };
    const next = () => {
      if (this.#probe !== probe) return;
      stop();
      this.#climb(better);
    };
    const take = () => {
      stop();
      this.#policy.climbed(transport);
      this.#start(`${transport} gets through`);
    };
    let isOpen = false;
    const frame = ([name]: Frame) => {
      if (this.#probe !== probe || name === "error" || isOpen) return;
      isOpen = true;
      this.#stopClimb?.();
      this.#stopClimb = startDeadline(this.#policy.trial, take);
    };
    const heard = () => {};
    const probe: Link = this.#open(transport, () => undefined, { heard, frame, ended: next });
    this.#probe = probe;
    this.#stopClimb = startDeadline(this.#policy.open, next);
  }

  #add(channel: string): true {
    checkChannel(channel);
    if (this.#channels.size >= MAX_CHANNELS) {
      throw new PushlabError("too-many-channels", `a connection has at most ${MAX_CHANNELS}`);
    }
    this.#channels.add(channel);
    return true;
  }

  #changed(name: "sub" | "unsub", channel: string): void {
    const link = this.#link;
    if (link?.request && this.#state === "open") {
      link.request(`["${name}","${channel}"]`).catch((error) => {
        if (this.#link !== link) return;
        if (name === "sub" && error.code !== "busy") this.#refused(channel, error);
        // Another connection names its channels as it opens.
        else this.#start(endOf(error).reason);
      });
    } else if ((this.#link || this.#isIdle) && !this.#isReopening) {
      // Changes that are made together open it once.
      this.#isReopening = true;
      queueMicrotask(() => {
        this.#isReopening = false;
        if (this.#link || this.#isIdle) this.#start("channels");
      });
    }
  }

  /** Gives what the server answered. */
  async #send(
    frame: string,
    path: string,
    parameters: Record<string, string>,
    json: string,
  ): Promise<unknown> {
    if (this.#state === "closed") throw closed();
    if (this.#link?.request && this.#state === "open" && frame.length <= MAX_SOCKET_LENGTH) {
      return this.#link.request(frame);
    }
    if (this.#posts.size >= MAX_POSTS)
      throw new PushlabError("busy", "too many wait for an answer");
    const controller = new AbortController();
    const { signal } = controller;
    const aborted = new Promise<never>((_, reject) => {
      signal.addEventListener("abort", () => reject(signal.reason));
    });
    this.#posts.add(controller);
    const { request } = this.#environment.timing;
    const late = new PushlabError("timeout", `no answer within ${request} ms`);
    const stop = startDeadline(request, () => controller.abort(late));
    try {
      const address = addressOf(this.#base, path, [], parameters);
      const answer = this.request((environment) => post(environment, address, json, signal));
      // It may still wait for a token.
      return readJson(await Promise.race([aborted, answer]));
    } finally {
      stop();
      this.#posts.delete(controller);
    }
  }
}

function closed(): PushlabError {
  return new PushlabError("closed", "closed by the client");
}

/** @throws PushlabError `bad-channel` */
function checkChannel(channel: string): void {
  const rule = /^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$/;
  if (!rule.test(channel)) {
    const text = `${`${channel}`.slice(0, 140)}: a channel is ${rule}`;
    throw new PushlabError("bad-channel", text);
  }
}

/** @throws PushlabError `bad-json` */
function writeJson(data: unknown): string {
  let what: unknown = typeof data;
  try {
    const json = JSON.stringify(data);
    if (json !== undefined) return json;
  } catch (error) {
    what = error;
  }
  throw new PushlabError("bad-json", `no JSON: ${what}`);
}
