import type { Connection } from "pushlab-client";
import { type ApiError, ask } from "../live/http-api";
import { asApiError } from "../live/use-resource";
import { recall, remember } from "./chat-memory";
import type { ChatAction, ChatState } from "./chat-state";
import type { ChatMessage, Entered, Room, Rooms } from "./interface";

const PATH = "/api/demos/chat";
/** Where everybody begins. */
const FIRST_ROOM = "lobby";
/** How often rooms that one is not in are looked at, ms. */
const ROOMS_MS = 10_000;

/** Status of refusals that pass: none at all, and those of a server that has too much to do. */
const TRANSIENT = [0, 429, 502, 503, 504];

/** The channel of a room. */
export const channelOf = (room: string) => `demo.chat.room.${room}`;

interface VisitContext {
  dispatch: (action: ChatAction) => void;
  state: () => ChatState;
  /** What the visit says of itself has changed. */
  changed: () => void;
}

/**
 * Somebody's stay in the chat: asks the server in their name, says that they are still there, takes leave when the page
 * goes and comes back when it does. Methods that ask the server throw an `ApiError`.
 */
export class ChatVisit {
  /** As the server has given it; null for who is not there. */
  session: Entered | null = null;
  /** Whether the visit before is being resumed. */
  isReturning = false;
  /** Whether one is there already, and on the way into one's rooms. */
  isEntering = false;
  /** Why one is no longer there. */
  problem: ApiError | null = null;
  /** Over which the messages come, from when there is one. */
  connection: Connection | null = null;
  /** Cursor to begin the subscription after; undefined before there is a session. */
  after: string | undefined;
  /** Of this visit or the one before. */
  name = "";
  /** Whether leave was taken for the page, which may be shown again: nobody is there under the session's token. */
  #hasLeft = false;
  /** The coming back that is under way. */
  #coming: Promise<void> | null = null;
  readonly #context: VisitContext;

  constructor(context: VisitContext) {
    this.#context = context;
  }

  /** Begins; gives how to end it when the page goes to another. */
  start(): () => void {
    const controller = new AbortController();
    const { signal } = controller;
    addEventListener("pagehide", () => this.#takeLeave(), { signal });
    // A page that the browser had kept is shown again.
    addEventListener("pageshow", () => this.#hasLeft && this.#comeBack(), { signal });
    const rooms = setInterval(() => document.hidden || this.reloadRooms(), ROOMS_MS);
    this.#recall();
    let beats: ReturnType<typeof setTimeout>;
    const beat = async () => {
      await this.#beat();
      if (!signal.aborted) beats = setTimeout(beat, this.session?.beat_ms ?? 1000);
    };
    beat();
    return () => {
      controller.abort();
      clearInterval(rooms);
      clearTimeout(beats);
      this.#takeLeave();
    };
  }

  /** Comes in under a name, into the rooms one was in before. The token is of the visit before: it may not have ended. */
  async enter(name: string, token?: string): Promise<void> {
    const session = await ask<Entered>("POST", `${PATH}/enter`, { name, token });
    this.session = session;
    this.#hasLeft = false;
    this.isEntering = true;
    this.name = session.name;
    this.after ??= session.cursor;
    this.problem = null;
    const { dispatch, state } = this.#context;
    dispatch({ kind: "entered", me: session.name, rooms: session.rooms });
    if (state().joined.length === 0) dispatch({ kind: "joining", room: FIRST_ROOM });
    // A connection that is made now begins at the session's cursor, with every room: nothing said since is missed. One
    // that is there already is told of the new inbox before others can know of it.
    this.connection?.subscribe(session.inbox);
    this.#context.changed();
    for (const room of state().joined) {
      // A room that is full, or whose name the server no longer takes, is one that one is not in.
      await this.#join(room, true).catch(() => dispatch({ kind: "parted", room }));
    }
    this.isEntering = false;
    this.#context.changed();
    this.#save(false);
  }

  /** Goes for good, and forgets what was said. */
  leave(): void {
    this.#send("leave").catch(() => {});
    this.session = null;
    this.after = undefined;
    remember(sessionStorage, null);
    this.#context.dispatch({ kind: "forgotten" });
    this.#context.changed();
  }

  join(room: string): Promise<void> {
    return this.#join(room, false);
  }

  /** `isLast`: while one is coming back, coming back first would wait for itself. */
  async #join(room: string, isLast: boolean): Promise<void> {
    const { dispatch, state } = this.#context;
    const isNew = !state().joined.includes(room);
    dispatch({ kind: "joining", room });
    this.connection?.subscribe(channelOf(room));
    // What a WebSocket echoes comes after what it was told before, so that nothing between joining and subscribing is
    // missed; the other transports resume from a cursor. Where it fails, the subscription begins anew.
    if (this.connection?.transport === "websocket") await this.connection.echo(0).catch(() => {});
    try {
      const { people } = await this.#send<Room>("join", { room }, isLast);
      dispatch({ kind: "joined", room: { room, people } });
    } catch (error) {
      if (isNew) dispatch({ kind: "parted", room });
      throw error;
    }
  }

  async part(room: string): Promise<void> {
    await this.#send("part", { room });
    this.#context.dispatch({ kind: "parted", room });
  }

  async say(room: string, text: string): Promise<void> {
    const at = performance.now();
    const message = await this.#send<ChatMessage>("say", { room, text });
    this.#context.dispatch({ kind: "accepted", message, at });
  }

  /** What one tells comes to the other alone, so that the answer is what one sees of it. */
  async tell(to: string, text: string): Promise<void> {
    const at = performance.now();
    const message = await this.#send<ChatMessage>("tell", { to, text });
    this.#context.dispatch({ kind: "message", message, at: performance.now() });
    this.#context.dispatch({ kind: "accepted", message, at });
  }

  /** Asks who is where. A list that does not come is not missed: the next one comes soon. */
  async reloadRooms(): Promise<void> {
    if (this.session === null) return;
    const answer = await ask<Rooms>("GET", `${PATH}/rooms`).catch(() => null);
    if (answer !== null) this.#context.dispatch({ kind: "rooms", rooms: answer.rooms });
  }

  /** Asks with the token; where it is nobody's any more, comes back first. */
  async #send<T>(what: string, body: object = {}, isLast = false): Promise<T> {
    if (!isLast && (this.#hasLeft || this.#coming !== null)) await this.#comeBack();
    const token = this.session?.token ?? "";
    try {
      return await ask<T>("POST", `${PATH}/${what}`, { token, ...body });
    } catch (error) {
      const problem = asApiError(error);
      if (problem.code !== "unauthorized" || isLast || this.session === null) throw problem;
      if (this.session.token === token) await this.#comeBack();
      if (this.session === null) throw problem;
      return this.#send<T>(what, body, true);
    }
  }

  async #beat(): Promise<void> {
    // What does not get through is said by the connection's state; the lease bears two losses.
    if (this.session !== null) await this.#send("beat").catch(() => {});
  }

  /** Resumes under the same name: the page was loaded anew, was silent for too long, or the server was restarted. */
  #comeBack(token = this.session?.token ?? ""): Promise<void> {
    this.#coming ??= this.#resume(token).finally(() => {
      this.#coming = null;
      this.isReturning = false;
      this.#context.changed();
    });
    return this.#coming;
  }

  async #resume(token: string): Promise<void> {
    this.isReturning = true;
    this.#context.changed();
    try {
      await this.enter(this.name, token);
    } catch (error) {
      const problem = asApiError(error);
      // A server that is not quite back yet: the next beat tries again.
      if (this.session !== null && TRANSIENT.includes(problem.status)) return;
      this.session = null;
      this.problem = problem;
    }
  }

  /** The page goes: others are told at once and not when the lease ends. */
  #takeLeave(): void {
    if (this.session === null) return;
    this.#hasLeft = true;
    this.#save(true);
    const body = JSON.stringify({ token: this.session.token });
    navigator.sendBeacon(`${PATH}/leave`, new Blob([body], { type: "application/json" }));
  }

  #recall(): void {
    const memory = recall(sessionStorage);
    if (memory === null) return;
    this.name = memory.name;
    this.after = memory.cursor;
    this.#context.dispatch({ kind: "recalled", memory });
    // Who has not left is still there, in the tab that this one is a copy of.
    if (memory.hasLeft) this.#comeBack(memory.token);
    else this.#context.changed();
  }

  #save(hasLeft: boolean): void {
    if (this.session === null) return;
    const { joined, conversations } = this.#context.state();
    const cursor = this.connection?.cursor;
    remember(sessionStorage, {
      name: this.name,
      token: this.session.token,
      hasLeft,
      cursor,
      joined,
      conversations,
    });
  }
}
