// A connection that writes down what it was told.

import { onTestFinished } from "vitest";
import { WebSocket } from "ws";
import type { Connection, ConnectOptions, State, Timing, Transport } from "../src/pushlab.ts";
import { connect } from "../src/pushlab.ts";
import { until } from "./server.ts";

/** Short waits before new attempts, so that tests wait for conditions and not for jitter. */
export const QUICK: Partial<Timing> = { retry: 40, retryMin: 5, retryMax: 300, poll: 30 };

export class Subscriber {
  readonly connection: Connection;
  /** The data of every message, and their cursors. */
  readonly data: unknown[] = [];
  readonly cursors: string[] = [];
  readonly states: {
    state: State;
    transport: Transport;
    httpVersion: string | undefined;
    reason: string;
  }[] = [];
  readonly gaps: { from: string; to: string; position: number }[] = [];
  readonly errors: { code: string; text: string }[] = [];
  readonly refused: { channel: string; code: string; text: string }[] = [];

  constructor(url: string, { timing, ...options }: ConnectOptions = {}) {
    const all = { channels: ["a"], WebSocket, timing: { ...QUICK, ...timing }, ...options };
    const connection = connect(url, all);
    this.connection = connection;
    connection.addEventListener("message", ({ data, cursor }) => {
      this.data.push(data);
      this.cursors.push(cursor);
    });
    connection.addEventListener("state", ({ state, transport, httpVersion, reason }) => {
      this.states.push({ state, transport, httpVersion, reason });
    });
    connection.addEventListener("gap", ({ from, to }) => {
      this.gaps.push({ from, to, position: this.data.length });
    });
    connection.addEventListener("refused", ({ channel, code, text }) => {
      this.refused.push({ channel, code, text });
    });
    connection.addEventListener("error", ({ code, text }) => {
      this.errors.push({ code, text });
    });
    onTestFinished(() => connection.close());
  }

  /** Waits until it is open over a transport. */
  async open(transport = this.connection.transport, within?: number): Promise<void> {
    await until(
      () => this.connection.state === "open" && this.connection.transport === transport,
      () => `${transport} is open; there was ${JSON.stringify(this.states.slice(-12))}`,
      within,
    );
  }

  /** Waits until so many messages have come. */
  async received(count: number, within?: number): Promise<void> {
    await until(
      () => this.data.length >= count,
      () =>
        `${count} messages; there were ${JSON.stringify(this.data).slice(0, 300)} and ${JSON.stringify(this.states.slice(-12))}`,
      within,
    );
  }

  /** How often it became open. */
  get lives(): number {
    return this.states.filter(({ state }) => state === "open").length;
  }
}
