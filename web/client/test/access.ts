// A server with an access file, and tokens for it.

import { createHmac } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished } from "vitest";
import type { ConnectOptions } from "../src/pushlab.ts";
import { Server } from "./server.ts";
import { Subscriber } from "./subscriber.ts";

const SECRET = "0123456789abcdef0123456789abcdef";
const KEY = "the-key-of-the-back-end-0123456789";

/** Each may do everything in channels of their own and in `club`, and editors may listen at the `desk`. */
const RULES = `
[[rule]]
who = "identified"
channels = ["{sub}:*", "club"]
may = ["subscribe", "publish"]

[[rule]]
who = "identified"
claims = { role = "editor" }
channels = ["desk"]
may = ["subscribe"]
`;

const base64 = (value: string | object) =>
  Buffer.from(typeof value === "string" ? value : JSON.stringify(value)).toString("base64url");

/** Everything that no event and no error may have in its text. */
const secrets: string[] = [KEY];

/** A token of somebody, good for so many seconds; with a negative number, no longer. */
export function token(sub: string, seconds: number, claims: object = {}): string {
  const exp = Math.floor(Date.now() / 1000) + seconds;
  const message = `${base64({ alg: "HS256" })}.${base64({ aud: "push", sub, exp, ...claims })}`;
  const signed = `${message}.${createHmac("sha256", SECRET).update(message).digest("base64url")}`;
  secrets.push(signed);
  return signed;
}

/** Starts a server that tells clients `warning` seconds before that their token expires. */
export async function guarded(warning = 30): Promise<Server> {
  const folder = await mkdtemp(join(tmpdir(), "pushlab-access-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  const write = (file: string, text: string) => writeFile(join(folder, file), text);
  await write("secret", SECRET);
  await write("key", KEY);
  await write(
    "access.toml",
    `${RULES}
    [token]
    audience = "push"
    leeway_s = 0
    warning_s = ${warning}
    [[token.key]]
    algorithm = "HS256"
    file = "secret"
    [back_end]
    key_file = "key"\n`,
  );
  const server = await Server.start(["--access", join(folder, "access.toml")]);
  server.fields.authorization = `Bearer ${KEY}`;
  return server;
}

/** Subscribes to one of Ada's channels, unless told otherwise; no text that comes of it may have a token in it. */
export function member(server: Server, options: ConnectOptions): Subscriber {
  const subscriber = new Subscriber(server.base, { channels: ["ada:a"], ...options });
  onTestFinished(() => {
    const { states, errors, refused } = subscriber;
    const told = JSON.stringify([states, errors, refused]);
    expect(secrets.filter((secret) => told.includes(secret))).toEqual([]);
  });
  return subscriber;
}
