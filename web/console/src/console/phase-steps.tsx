import type { LiveRun } from "../generated/console";
import { PHASES } from "./live-view";

/** Where a run is among its phases; a change of phase is read aloud. */
export function PhaseSteps({ run }: { run: LiveRun | null }) {
  const present = PHASES.findIndex((one) => one.phase === run?.phase);
  const about = PHASES[present]?.about;
  return (
    <>
      <ol class="phases">
        {PHASES.map(({ phase, name }, index) => (
          <li
            key={phase}
            class={index < present ? "past" : undefined}
            aria-current={index === present ? "step" : undefined}
          >
            {name}
          </li>
        ))}
      </ol>
      <p class="note" role="status">
        {about ??
          (run === null ? "the next run is being prepared" : "the subject is being started")}
      </p>
    </>
  );
}
