// A house's server as a process of its own, and what Linux tells of it.

import { readdirSync, readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { Processes } from "./processes.js";
import { until, within } from "./waiting.js";

/** A virtual machine that has never run here takes its time. */
const START_MS = 60_000;
const LOG_CHARACTERS = 4000;

export class HouseServer {
  #process;
  #log = "";
  base;
  port;

  /** Starts it on a port that the kernel chooses. */
  static async start(house, environment = {}) {
    const server = new HouseServer();
    server.#process = new Processes(house.start, {
      cwd: house.folder,
      env: { ...process.env, ...environment, HOST: "127.0.0.1", PORT: "0" },
    });
    const { child } = server.#process;
    child.stderr.on("data", (text) => server.#write(text));
    createInterface({ input: child.stdout }).on("line", (line) => server.#read(line));
    try {
      await until(
        () => server.port || !server.isRunning,
        "the server says where it listens",
        START_MS,
      );
      if (!server.port) {
        const how = await within(3000, server.#process.ended, "it has ended");
        throw new Error(`${house.start.join(" ")} has ended: ${how}`);
      }
    } catch (error) {
      await server.stop();
      throw new Error(`${house.title} did not start: ${error.message}; it wrote: ${server.#log}`);
    }
    return server;
  }

  #write(text) {
    this.#log = (this.#log + text).slice(-LOG_CHARACTERS);
  }

  #read(line) {
    try {
      const { listening } = JSON.parse(line);
      const port = Number(listening.split(":").at(-1));
      if (port > 0 && !this.port) {
        this.port = port;
        this.base = `http://127.0.0.1:${port}`;
        return;
      }
    } catch {
      // Not the line that is waited for.
    }
    this.#write(`${line}\n`);
  }

  get isRunning() {
    return this.#process.isRunning;
  }

  /** The end of what it wrote. */
  get log() {
    return this.#log;
  }

  /** Ends all of it. */
  async stop() {
    this.#process.signal("SIGTERM");
    try {
      await until(() => !this.isRunning, "it ends", 3000);
    } catch {
      // It is not asked again.
    }
    this.#process.signal("SIGKILL");
    await until(() => !this.isRunning, "the killed server is gone");
  }

  /** The process and those it started. */
  get #pids() {
    const group = this.#process.child.pid;
    return readdirSync("/proc").filter((name) => {
      if (!/^\d+$/.test(name)) return false;
      try {
        // After the name in brackets, which may have any characters: state, parent, group.
        const stat = readFileSync(`/proc/${name}/stat`, "utf8");
        return Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[2]) === group;
      } catch {
        return false;
      }
    });
  }

  /** Resident memory in bytes. */
  get memory_bytes() {
    const kib = this.#pids.map((pid) =>
      Number(/^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? 0),
    );
    return kib.reduce((sum, each) => sum + each, 0) * 1024;
  }

  /** Open descriptors, sockets among them. */
  get descriptors() {
    const counts = this.#pids.map((pid) => readdirSync(`/proc/${pid}/fd`).length);
    return counts.reduce((sum, each) => sum + each, 0);
  }
}
