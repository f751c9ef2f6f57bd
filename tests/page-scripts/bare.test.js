// The client for pages of the dialect `bare`, with a `fetch` that only writes down what it is asked.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import vm from "node:vm";

const SCRIPT = new URL("../../crates/fleet/src/browser/bare.js", import.meta.url);

/** A client that polls at an interval: what it asked for, and what it was given. */
function polling(more = {}) {
  const [asked, data] = [[], []];
  const fetch = async (address) => {
    asked.push(address);
    const body = address.endsWith("/users") ? '["Ada"]' : `[${asked.length},{"n":${asked.length}}]`;
    return { ok: true, json: async () => JSON.parse(body), text: async () => body };
  };
  const context = vm.createContext({ fetch, encodeURIComponent, Promise, JSON });
  vm.runInContext(readFileSync(SCRIPT, "utf8"), context);
  const client = {
    target: "http://host",
    path: "/base",
    how: "",
    transport: "polling",
    channels: ["room"],
    publishes_to: "room",
    sends_echoes: false,
    wait_s: 25,
    user_list: false,
    kept: {},
    onRequest() {},
    onSubscribed() {},
    onData: (one) => data.push(one.n),
    onClosed: (why) => assert.fail(`closed: ${why}`),
    ...more,
  };
  const connect = () => vm.runInContext("framework", context).connect(client);
  return { connect, asked, data };
}

const settled = () => new Promise((resolve) => setTimeout(resolve));

test("a poll is followed by the question for the users where they are wanted", async () => {
  const { connect, asked } = polling({ user_list: true });
  const connection = connect();
  await settled();
  await connection.ask();
  assert.deepEqual(asked, [
    "http://host/base/poll?channel=room",
    "http://host/base/poll?channel=room&after=1",
    "http://host/base/users",
  ]);
});

test("without that nobody asks for them", async () => {
  const { connect, asked, data } = polling();
  const connection = connect();
  await settled();
  await connection.ask();
  assert.deepEqual(asked, ["http://host/base/poll?channel=room", "http://host/base/poll?channel=room&after=1"]);
  assert.deepEqual(data, [1, 2]);
});

test("a client that connects again goes on after what it has", async () => {
  const { connect, asked } = polling();
  connect();
  await settled();
  connect();
  await settled();
  assert.equal(asked[1], "http://host/base/poll?channel=room&after=1");
});
