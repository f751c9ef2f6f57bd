// Random values that a seed repeats.

/** A generator of numbers from 0 to below 1 (mulberry32). */
export function randomFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Runs `check` with many seeds; a failure names the seed. */
export function forSeeds(count: number, check: (random: () => number) => void): void {
  for (let seed = 1; seed <= count; seed++) {
    try {
      check(randomFrom(seed));
    } catch (error) {
      throw new Error(`seed ${seed}: ${error instanceof Error ? error.message : error}`);
    }
  }
}

export function pick<T>(random: () => number, values: readonly T[]): T {
  return values[Math.floor(random() * values.length)] as T;
}

/** Parts a text at random places. */
export function split(random: () => number, text: string): string[] {
  const parts: string[] = [];
  for (let at = 0; at < text.length; ) {
    const length = 1 + Math.floor(random() * random() * 40);
    parts.push(text.slice(at, at + length));
    at += length;
  }
  return parts;
}
