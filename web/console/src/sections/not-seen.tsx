import type { Unobserved } from "../generated/report";
import { Reasons } from "./reasons";

/** What could not be read of a subject, so that its figures are absent. */
export function NotSeen({ unobserved }: { unobserved: readonly Unobserved[] }) {
  if (unobserved.length === 0) return null;
  return (
    <section id="not-seen" tabIndex={-1} aria-labelledby="not-seen-title">
      <h2 id="not-seen-title">Not seen</h2>
      <Reasons of={unobserved} />
    </section>
  );
}
