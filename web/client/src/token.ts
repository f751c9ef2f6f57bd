import { PushlabError } from "./errors.ts";
import { startDeadline } from "./timing.ts";

/** Gives a token, or a promise of one. The signal is aborted when nobody waits for it any longer. */
export type GetToken = (signal: AbortSignal) => string | PromiseLike<string>;

/** What a JSON Web Token is made of, and what may stand in a header field and in the name of a subprotocol. The server
 * takes no longer one. Checked here, because platforms quote what they do not accept. */
const TOKEN = /^[\w.~+-]{1,4096}$/;
/** Age in milliseconds from which a token may be why a WebSocket failed that does not say why. Younger ones are kept, so
 * that a server which is away does not make its clients ask for one token after another. */
const DOUBTFUL_AGE = 30_000;

/** The tokens of a connection, one after another. */
export class Tokens {
  readonly #obtain: GetToken;
  readonly #limit: number;
  #token: string | undefined;
  #obtainedAt = 0;
  /** Whether the server may take it. */
  #isUsable = false;
  #call: Promise<void> | undefined;
  #controller: AbortController | undefined;

  /** A call of `obtain` may take `limit` milliseconds. */
  constructor(obtain: GetToken, limit: number) {
    this.#obtain = obtain;
    this.#limit = limit;
  }

  /** The newest; undefined before the first. */
  get token(): string | undefined {
    return this.#token;
  }

  /** Whether another is needed before the next attempt. */
  get isMissing(): boolean {
    return !this.#isUsable;
  }

  /** Milliseconds for which the newest has been here. */
  get age(): number {
    return performance.now() - this.#obtainedAt;
  }

  /** The server did not take a token: unless there is a newer one by now, another is needed. */
  refuse(token: string | undefined): void {
    if (token === this.#token) this.#isUsable = false;
  }

  /** A WebSocket failed and nobody knows why. An old token may be the reason, or one that follows on a refused one. */
  doubt(follows: boolean): void {
    if (follows || this.age > DOUBTFUL_AGE) this.#isUsable = false;
  }

  /** Asks for another, or waits for the one that was asked for. Rejects with a `PushlabError`, `no-token`. */
  renew(): Promise<void> {
    this.#call ??= this.#ask().finally(() => {
      this.#call = undefined;
    });
    return this.#call;
  }

  /** Makes a request, and makes it once more with another token if the server did not take the first. */
  async use<T>(request: () => Promise<T>): Promise<T> {
    if (this.isMissing) await this.renew();
    const token = this.#token;
    try {
      return await request();
    } catch (error) {
      if (!isTokenRefusal(error)) throw error;
      this.refuse(token);
      if (this.isMissing) await this.renew();
      return request();
    }
  }

  /** Nobody waits any longer. */
  close(): void {
    this.#controller?.abort();
  }

  #ask(): Promise<void> {
    const controller = new AbortController();
    this.#controller = controller;
    const { signal } = controller;
    const stop = startDeadline(this.#limit, () => controller.abort());
    return new Promise<void>((resolve, reject) => {
      // Not what it threw: a parser quotes what it could not read, which may be a token.
      const fail = (what: string) => reject(new PushlabError("no-token", `getToken ${what}`));
      signal.addEventListener("abort", () => fail(`gave nothing within ${this.#limit} ms`));
      Promise.resolve()
        .then(() => this.#obtain(signal))
        .then(
          (token: unknown) => {
            if (typeof token !== "string" || !TOKEN.test(token)) return fail("gave no token");
            // What comes late is not taken: another call may be under way.
            if (signal.aborted) return;
            this.#token = token;
            this.#obtainedAt = performance.now();
            this.#isUsable = true;
            resolve();
          },
          (error) => fail(`failed: ${error instanceof Error ? error.name : typeof error}`),
        );
    }).finally(stop);
  }
}

/** Whether an error means that another token may be taken. */
export function isTokenRefusal(error: unknown): error is PushlabError {
  if (!(error instanceof PushlabError)) return false;
  return error.code === "unauthorized" || error.code === "token-expired";
}
