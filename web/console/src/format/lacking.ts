import type { Lacking } from "../generated/report";

/** What stands where a figure would, if it was tried for and is not there, in the order in which they follow figures. */
export const LACKING_WORDS = {
  "not-reached": "not reached",
  "too-few": "too few",
  withheld: "withheld",
  failed: "failed",
} as const satisfies Record<Lacking["why"], string>;

/** Why there is no figure under this name, or null. */
export function lackingOf(
  all: Readonly<Record<string, Lacking>> | undefined,
  name: string,
): Lacking | null {
  return all !== undefined && Object.hasOwn(all, name) ? (all[name] ?? null) : null;
}
