// Waits for conditions and answers, each with a deadline.

/** How long one waits for what should come. A test of what never comes may lower it. */
export const patience = { ms: 10_000 };

export const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** Waits until `condition` holds; `what` says what did not happen when the deadline has passed. */
export async function until(condition, what, within_ms = patience.ms) {
  const deadline = performance.now() + within_ms;
  for (;;) {
    const value = await condition();
    if (value) return value;
    if (performance.now() > deadline)
      throw new Error(`did not happen within ${within_ms} ms: ${what}`);
    await sleep(2);
  }
}

/** What the promise gives, or an error when the deadline has passed. */
export async function within(ms, promise, what) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no answer within ${ms} ms: ${what}`)), ms);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}
