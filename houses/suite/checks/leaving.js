// Clients come and go by the hundred, and nothing of them stays.

import assert from "node:assert/strict";
import { patience } from "../waiting.js";

const CLIENTS = 100;
const ROUNDS = 3;
const AT_ONCE = 20;
/** 0.2 MiB for each client of the rounds: wide, because a virtual machine collects when it likes. */
const MAX_GROWTH_BYTES = ROUNDS * CLIENTS * 0.2 * 1024 * 1024;
/** What may be open besides: files of a library, a connection that is kept for a while. */
const MAX_MORE_DESCRIPTORS = 30;

async function comeAndGo(visit) {
  for (let n = 0; n < CLIENTS; n += AT_ONCE) {
    const proxy = await visit.proxy();
    const connecting = Array.from({ length: AT_ONCE }, (_, at) =>
      visit.peer(at % 2 ? proxy.base : undefined),
    );
    const peers = await Promise.all(connecting);
    await Promise.all(peers.map((peer) => peer.call("list")));
    // Half of them say goodbye.
    for (const [at, peer] of peers.entries()) peer.isCut = at % 2 === 1;
    proxy.cut();
    await Promise.allSettled(peers.map((peer) => peer.close()));
    proxy.close();
  }
}

export const checks = [
  {
    name: "clients-come-and-go",
    async run(visit) {
      await comeAndGo(visit);
      const { server } = visit;
      const before = { bytes: server.memory_bytes, descriptors: server.descriptors };
      for (let round = 0; round < ROUNDS; round += 1) await comeAndGo(visit);
      const growth = server.memory_bytes - before.bytes;
      visit.trial.note("memory_growth_bytes", growth);
      const mib = (growth / 1024 / 1024).toFixed(1);
      const clients = `${ROUNDS * CLIENTS} clients`;
      assert.ok(growth <= MAX_GROWTH_BYTES, `after ${clients} the server holds ${mib} MiB more`);
      // Clients keep a connection for the next request for some seconds.
      const isGone = () => server.descriptors <= before.descriptors + MAX_MORE_DESCRIPTORS;
      await visit.until(isGone, `the descriptors of ${clients} are closed`, 3 * patience.ms);
      await visit.assertWorks();
    },
  },
];
