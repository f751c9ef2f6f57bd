import { addressOf } from "./address.ts";
import { PushlabError } from "./errors.ts";
import { ask, readText } from "./http.ts";
import type { Environment } from "./link.ts";
import { startDeadline } from "./timing.ts";

/** Whether a refusal is about channels: the server names the first that it refuses. */
export function isAboutChannels(
  error: PushlabError | undefined,
  channels: readonly string[],
): boolean {
  const words = error?.message.split(/[^\w.:-]+/);
  return error?.code === "forbidden" && channels.some((channel) => words?.includes(channel));
}

/**
 * The channels that the server refuses, and why: a poll is refused for one of them, a stream where it is all of them,
 * and neither answer lists them. So each is asked for alone, once, until
 * `controller` aborts.
 */
export async function findRefused(
  environment: Environment,
  base: URL,
  channels: readonly string[],
  error: PushlabError,
  controller: AbortController,
): Promise<(readonly [channel: string, why: PushlabError])[]> {
  if (channels.length === 1) return [[channels[0] as string, error]];
  const stop = startDeadline(environment.timing.request, () => controller.abort());
  const { signal } = controller;
  const answers = channels.map(async (channel) => {
    try {
      const address = addressOf(base, "poll", [channel], {});
      await readText(await ask(environment, address, "application/json", { signal }));
    } catch (why) {
      if (why instanceof PushlabError && why.code === "forbidden") return [channel, why] as const;
    }
    // Answered, or not now: the next attempt shows it.
    return undefined;
  });
  const refused = (await Promise.all(answers)).filter((answer) => answer !== undefined);
  stop();
  return refused;
}
