// Others' programs that listen on a port of their command line, ended after the test. tests/deployment and
// tests/monitoring use them.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import net from "node:net";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { until } from "./harness.js";

/** How often another port is tried when somebody else was faster. */
const MAX_TRIES = 5;

/** A process that is ended after the test `t`, by its own id. */
export function start(t, command, options, cwd, end = "SIGTERM") {
  // A store of its own: the user's may be of another build. Debian's servers are not in everybody's PATH.
  const env = { ...process.env, PATH: `${process.env.PATH}:/usr/sbin`, PUSHLAB_STORE: join(cwd, "results.db") };
  const child = spawn(command, options, { cwd, env, stdio: ["ignore", "ignore", "pipe"] });
  const started = { child, lines: [] };
  started.isOver = () => child.pid === undefined || child.exitCode !== null || child.signalCode !== null;
  child.on("error", (error) => started.lines.push(`${command}: ${error.message}`));
  createInterface({ input: child.stderr }).on("line", (line) => started.lines.push(line));
  t.after(async () => {
    if (started.isOver()) return;
    // Workers go with their master.
    child.kill(end);
    await until(started.isOver, `${command} ends`).finally(() => child.kill("SIGKILL"));
  });
  /** Waits for something that needs the process. */
  started.until = (condition, what) =>
    until(
      async () => {
        if (!started.isOver()) return await condition();
        if (child.pid !== undefined) await until(() => child.stderr.readableEnded, `${command} has said why it ended`);
        return assert.fail(`${command} has ended: ${started.lines.slice(-5).join(" / ")}`);
      },
      () => `${what}; ${command} said ${started.lines.slice(-5).join(" / ")}`,
    );
  return started;
}

/** Starts a server with the options for a free port, which it gives too, and waits until it is ready. */
export async function startOnFreePort(t, command, optionsFor, cwd, isReady = listens) {
  for (let tries = 1; ; tries += 1) {
    const port = await freePort();
    const started = start(t, command, optionsFor(port), cwd);
    try {
      await started.until(() => isReady(port), `${command} is ready`);
      return { started, port };
    } catch (error) {
      if (!started.isOver() || tries === MAX_TRIES) throw error;
    }
  }
}

async function freePort() {
  const listener = net.createServer().listen(0, "127.0.0.1");
  await once(listener, "listening");
  const { port } = listener.address();
  listener.close();
  await once(listener, "close");
  return port;
}

async function listens(port) {
  const socket = net.connect(port, "127.0.0.1");
  try {
    await once(socket, "connect");
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}
