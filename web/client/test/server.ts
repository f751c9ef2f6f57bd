// `pushlab serve` as a process.

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { onTestFinished } from "vitest";

const BINARY =
  process.env.PUSHLAB ?? fileURLToPath(new URL("../../../target/release/pushlab", import.meta.url));

/** For so many milliseconds a server tries to listen on a given port: a connection of another test may have it. */
const LISTENS_WITHIN = 10_000;

/** Waits until `condition` gives something; `what` says what did not happen when the deadline has passed. */
export async function until<T>(
  condition: () => T | Promise<T>,
  what: string | (() => string),
  within = 15_000,
): Promise<T> {
  const deadline = performance.now() + within;
  for (;;) {
    const value = await condition();
    if (value) return value;
    if (performance.now() > deadline) {
      const name = typeof what === "function" ? what() : what;
      throw new Error(`did not happen within ${within} ms: ${name}`);
    }
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

export class Server {
  readonly #process: ChildProcess;
  #log = "";
  port = 0;
  /** Header fields of what is asked past the client under test. */
  readonly fields: Record<string, string> = {};

  private constructor(process: ChildProcess) {
    this.#process = process;
  }

  /** Starts one on a free port, or on `port`, and ends it after the test. */
  static async start(options: string[] = [], port = 0): Promise<Server> {
    const deadline = performance.now() + LISTENS_WITHIN;
    for (;;) {
      const server = await Server.#launch(options, port);
      if (server.port !== 0) return server;
      const isTaken = port !== 0 && server.#log.includes("Address already in use");
      if (!isTaken || performance.now() > deadline)
        throw new Error(`the server did not start: ${server.#log}`);
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }

  /** Starts the process; one that ends at once has port 0. */
  static async #launch(options: string[], port: number): Promise<Server> {
    const args = ["serve", "--listen", `127.0.0.1:${port}`, "--json", ...options];
    // The demos publish too, so cursors could not be foreseen; and some clients are pages of another origin.
    const env = { ...process.env, PUSHLAB_NO_PAGES: "true", PUSHLAB_ALLOW_ORIGIN: "*" };
    const child = spawn(BINARY, args, { env, stdio: ["ignore", "pipe", "pipe"] });
    const server = new Server(child);
    child.on("error", (error) => {
      server.#log += `${BINARY}: ${error.message}`;
    });
    child.stderr.on("data", (text) => {
      server.#log = (server.#log + text).slice(-4000);
    });
    onTestFinished(() => server.kill());
    let first = "";
    createInterface({ input: child.stdout }).once("line", (line) => {
      first = line;
    });
    await until(
      () => first !== "" || child.exitCode !== null || child.pid === undefined,
      () => `the server says where it listens; it logged: ${server.#log}`,
    );
    if (first !== "") server.port = Number(JSON.parse(first).listening.split(":").at(-1));
    else if (child.pid !== undefined)
      await until(() => child.stderr.readableEnded, "the server has said why it ended");
    return server;
  }

  get base(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  /** Ends the process without a goodbye. */
  async kill(): Promise<void> {
    const child = this.#process;
    if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
    child.kill("SIGKILL");
    await once(child, "exit");
  }

  /** Asks the process to stop. */
  stop(): void {
    this.#process.kill("SIGTERM");
  }

  /** Publishes past the client under test. */
  async publish(channel: string, data: unknown): Promise<void> {
    const response = await fetch(`${this.base}/publish?channel=${channel}`, {
      method: "POST",
      headers: { ...this.fields, "content-type": "application/json" },
      body: JSON.stringify(data),
    });
    if (response.status !== 200) throw new Error(await response.text());
    await response.text();
  }

  /** The server's counters. */
  async stats(): Promise<Record<string, number>> {
    const response = await fetch(`${this.base}/stats`, { headers: this.fields });
    return response.json() as Promise<Record<string, number>>;
  }
}
