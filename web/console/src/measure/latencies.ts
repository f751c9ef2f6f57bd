/**
 * Jitter: the mean difference, without its sign, between the latency of one message and that of the next. It is what
 * RFC 3550 (section 6.4.1) estimates, without its smoothing. Undefined of fewer than two.
 */
export function jitter(latencies: readonly number[]): number | undefined {
  if (latencies.length < 2) return undefined;
  let sum = 0;
  for (let at = 1; at < latencies.length; at++) {
    sum += Math.abs((latencies[at] ?? 0) - (latencies[at - 1] ?? 0));
  }
  return sum / (latencies.length - 1);
}

/** Messages that arrived closer together than this part of the time between their departures came in one clump. */
const CLUMP_SHARE = 0.2;
/** From this size on, clumps are no accident: something collects messages before it lets them pass. */
const BUFFERED_CLUMP = 3;

/**
 * The size of the clump in which a message came, as the mean over all messages: 1 where each came alone, and their
 * number where all came at once. A buffer that fills and empties counts a lot. The largest clump is left out if it holds
 * no more than half of the messages: it may be a single stall, of the network or of this machine.
 *
 * `arrivals` are instants in the order of arrival, of messages that departed `interval` apart, in the same unit.
 */
export function clumpSize(arrivals: readonly number[], interval: number): number {
  if (arrivals.length === 0) return 0;
  const sizes: number[] = [];
  arrivals.forEach((arrival, at) => {
    const isAlone = at === 0 || arrival - (arrivals[at - 1] ?? 0) >= interval * CLUMP_SHARE;
    if (isAlone) sizes.push(1);
    else sizes[sizes.length - 1] = (sizes.at(-1) ?? 0) + 1;
  });
  const largest = Math.max(...sizes);
  if (largest <= arrivals.length / 2) sizes.splice(sizes.indexOf(largest), 1);
  const count = sizes.reduce((sum, size) => sum + size, 0);
  return sizes.reduce((sum, size) => sum + size * size, 0) / count;
}

/** Whether clumps of this size mean that something holds messages back. */
export function isBuffered(size: number): boolean {
  return size >= BUFFERED_CLUMP;
}
