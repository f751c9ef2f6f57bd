import { backoff, type Timing } from "./timing.ts";
import type { Transport } from "./transport.ts";

/** Highest value of the waits that double without a cap of their own, in milliseconds. */
const MAX_OPEN = 30_000;
const MAX_CLIMB = 600_000;
/** Longest wait before a better transport is tried that has worked already: the server was away, not the way shut. */
const MAX_CLIMB_BACK = 5_000;
/** Failures of a transport that worked before, after which the next one is tried. */
const MAX_FAILURES = 2;
/** How long a poll is held, as a part of the life after which something cut a connection. Half of it, as what cuts the
 * quiet may have counted from a heartbeat. */
const HELD_PART = 0.5;

/** How an attempt or a connection ended, as far as the policy asks. */
export interface Ending {
  /** Whether the transport may be to blame; not where the server said why. */
  blames: boolean;
  /** Milliseconds that the server asked to wait; 0 if it did not. */
  retryAfter: number;
  /** Milliseconds after which the server said to come back as it ended the connection: to each client another time. */
  returnAfter?: number | undefined;
  /** Whether only the first bytes of a stream got through: it counts as never open. */
  isHeldBack?: boolean;
}

/**
 * Which transport is tried next, and when. Owns no clock: `now` is in milliseconds from anywhere.
 *
 * A transport that had a short life is left at once, for polls if there are any: what cuts one stream cuts the others.
 * If those do not get through either, the server was away, and nothing was said against the transport. From there,
 * better ones have to live for a while before they are trusted again.
 *
 * *Invariant*: between two attempts there is a random delay, except on the first way down, before any transport has
 * worked: so a server that is away is asked five times in a row at most, and only by those who just came; and where a
 * server said when to come back.
 */
export class Policy {
  readonly #transports: readonly Transport[];
  readonly #timing: Timing;
  readonly #random: () => number;
  /** Transports that have been open, and were neither held back nor in vain tried again since. */
  readonly #proven = new Set<number>();
  #level = 0;
  /** Attempts since the last life that was not short. */
  #attempts = 0;
  /** Failures of this transport to open, in a row. */
  #misses = 0;
  /** The level that was left after a short life, until the next attempt has shown why. */
  #left: number | undefined;
  /** The shortest life that something seems to have cut. */
  #cutAfter = Number.POSITIVE_INFINITY;
  /** Ways down to the end without any success. */
  #rounds = 0;
  #openedAt: number | undefined;
  #climb: number;
  #climbAt: number | undefined;

  /** `transports` are in order of preference and at least one; `random` gives numbers from 0 to below 1. */
  constructor(transports: readonly Transport[], timing: Timing, random: () => number) {
    this.#transports = transports;
    this.#timing = timing;
    this.#random = random;
    this.#climb = timing.climb;
  }

  /** The transport to use now. */
  get transport(): Transport {
    return this.#transports[this.#level] as Transport;
  }

  /** Milliseconds within which it must open. */
  get open(): number {
    return Math.min(this.#timing.open * 2 ** this.#rounds, Math.max(MAX_OPEN, this.#timing.open));
  }

  /** Milliseconds for which a long poll is held: less than after what something cuts. */
  get held(): number {
    const { heartbeat, poll } = this.#timing;
    return Math.min(heartbeat, Math.max(poll, this.#cutAfter * HELD_PART));
  }

  /** Milliseconds that a better transport has to live before it is trusted. */
  get trial(): number {
    const { early, shortLife } = this.#timing;
    return this.#cutAfter < shortLife ? shortLife : early;
  }

  /** The better transports, best first. */
  get better(): Transport[] {
    return this.#transports.slice(0, this.#level);
  }

  /** The transports behind it, best first. */
  get below(): readonly Transport[] {
    return this.#transports.slice(this.#level + 1);
  }

  /** An attempt begins. */
  attempt(): void {
    this.#openedAt = undefined;
  }

  /** The transport showed its first bytes. */
  opened(now: number): void {
    this.#openedAt = now;
    this.#proven.add(this.#level);
    this.#misses = 0;
    this.#rounds = 0;
  }

  /** The attempt or the connection ended: gives the milliseconds until the next attempt. */
  ended(now: number, { blames, retryAfter, returnAfter, isHeldBack }: Ending): number {
    const { shortLife } = this.#timing;
    const isBlamed = blames && returnAfter === undefined;
    if (isHeldBack) {
      this.#proven.delete(this.#level);
      this.#openedAt = undefined;
    }
    const life = this.#openedAt === undefined ? undefined : now - this.#openedAt;
    const left = this.#left;
    this.#openedAt = this.#left = undefined;
    let isImmediate = false;
    if (life !== undefined && life >= shortLife) {
      this.#attempts = 0;
      if (this.#level === 0) this.#climb = this.#timing.climb;
    } else if (life === undefined && left !== undefined) {
      this.#level = left;
      this.#cutAfter = Number.POSITIVE_INFINITY;
    } else if (isBlamed && life !== undefined) {
      this.#wasCut(life);
    } else if (isBlamed) {
      const isProven = this.#proven.has(this.#level);
      if (++this.#misses >= (isProven ? MAX_FAILURES : 1)) {
        const isFirstWay = this.#proven.size === 0 && this.#rounds === 0 && retryAfter === 0;
        isImmediate = this.#stepDown() && isFirstWay;
      }
    }
    if (isImmediate) return 0;
    return backoff(this.#timing, this.#attempts++, this.#random(), retryAfter, returnAfter);
  }

  /** The user or the network says that now is a good moment: delays begin anew. */
  refresh(): void {
    this.#attempts = 0;
  }

  /** Milliseconds until the better transports are to be tried; undefined where there are none. */
  climbDelay(now: number): number | undefined {
    if (this.#level === 0) return undefined;
    const isBack = Math.min(...this.#proven) < this.#level;
    const wait = isBack ? Math.min(this.#climb, MAX_CLIMB_BACK) : this.#climb;
    this.#climbAt ??= now + wait * (0.75 + this.#random() / 2);
    return Math.max(0, this.#climbAt - now);
  }

  /** A better transport showed its first bytes: it is the one to use. */
  climbed(transport: Transport): void {
    this.#level = this.#transports.indexOf(transport);
    this.#misses = 0;
    this.#climbAt = undefined;
    this.#cutAfter = Number.POSITIVE_INFINITY;
  }

  /** No better transport did. */
  climbFailed(): void {
    for (const level of this.#proven) if (level < this.#level) this.#proven.delete(level);
    this.#climb = Math.min(this.#climb * 2, Math.max(MAX_CLIMB, this.#timing.climb));
    this.#climbAt = undefined;
  }

  /** The transport opens but does not stay. The last one is kept all the same. */
  #wasCut(life: number): void {
    this.#cutAfter = Math.min(this.#cutAfter, life);
    this.#left = this.#level;
    const { below } = this;
    if (below.length > 0) {
      this.#level +=
        1 +
        Math.max(
          0,
          below.findIndex((transport) => transport.endsWith("polling")),
        );
    }
  }

  /** The next transport, or after the last the best that has worked: false for that. */
  #stepDown(): boolean {
    this.#misses = 0;
    if (++this.#level < this.#transports.length) return true;
    this.#level = Math.min(...this.#proven, this.#transports.length);
    if (this.#level === this.#transports.length) this.#level = 0;
    this.#rounds++;
    return false;
  }
}
