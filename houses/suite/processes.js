// Processes that are started here, with all that they start; none is left when the suite ends.

import { spawn } from "node:child_process";

const running = new Set();

export class Processes {
  #child;
  /** Resolves when it has ended, or could not be started, and all that it wrote has come: null, or why. */
  ended;

  /** Starts a command in a group of its own: some are scripts, and all of what they start must end with them. */
  constructor([command, ...args], options) {
    const stdio = ["ignore", "pipe", "pipe"];
    this.#child = spawn(command, args, { ...options, stdio, detached: true });
    running.add(this);
    this.#child.on("exit", () => running.delete(this));
    this.ended = new Promise((resolve) => {
      this.#child.on("error", (error) => {
        running.delete(this);
        resolve(error.message);
      });
      this.#child.on("close", (code, signal) =>
        resolve(code === 0 ? null : (signal ?? `exit code ${code}`)),
      );
    });
  }

  get child() {
    return this.#child;
  }

  get isRunning() {
    const { pid, exitCode, signalCode } = this.#child;
    return pid !== undefined && exitCode === null && signalCode === null;
  }

  signal(name) {
    if (this.#child.pid === undefined) return;
    try {
      process.kill(-this.#child.pid, name);
    } catch {
      // All of it has ended.
    }
  }
}

/** Ends whatever is still running, at once. */
export function endAll() {
  for (const processes of running) processes.signal("SIGKILL");
}

/** Runs a command to its end; an Error has the end of what it wrote. */
export async function run(command, options, within_ms) {
  const processes = new Processes(command, options);
  const { child } = processes;
  let wrote = "";
  for (const stream of [child.stdout, child.stderr])
    stream.on("data", (text) => {
      wrote = (wrote + text).slice(-2000);
    });
  const timer = setTimeout(() => processes.signal("SIGKILL"), within_ms);
  const how = await processes.ended;
  clearTimeout(timer);
  if (how) throw new Error(`${command.join(" ")}: ${how}\n${wrote}`);
}
