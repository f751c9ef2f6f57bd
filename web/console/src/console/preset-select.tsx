import { formatDuration } from "../format/duration";
import { plural } from "../format/number";
import type { Preset } from "../generated/console";
import { choose } from "./router";

interface PresetSelectProps {
  /** Null until they are known. */
  presets: readonly Preset[] | null;
  preset: string | null;
  profile: string | null;
}

/** Chooses between an experiment of one's own and those that come with the program. */
export function PresetSelect({ presets, preset, profile }: PresetSelectProps) {
  const chosen = presets?.find((one) => one.name === preset);
  return (
    <div class="preset">
      <div class="controls">
        <label>
          Experiment
          <select
            value={preset ?? ""}
            onChange={(event) =>
              choose({ preset: event.currentTarget.value || null, profile: null })
            }
          >
            <option value="">my own</option>
            {preset !== null && chosen === undefined && <option value={preset}>{preset}</option>}
            {presets?.map((one) => (
              <option key={one.name} value={one.name}>
                {one.title} ({one.name})
              </option>
            ))}
          </select>
        </label>
        {chosen !== undefined && chosen.profiles.length > 0 && (
          <label>
            Profile
            <select
              value={profile ?? ""}
              onChange={(event) => choose({ profile: event.currentTarget.value || null })}
            >
              <option value="">full size</option>
              {chosen.profiles.map((one) => (
                <option key={one} value={one}>
                  {one}
                </option>
              ))}
            </select>
          </label>
        )}
      </div>
      <p class="note">
        {chosen === undefined
          ? "One of your own, or one that comes with the program: published studies, and questions that they left open."
          : aboutPreset(chosen)}
      </p>
    </div>
  );
}

function aboutPreset({ about, runs, estimated_s }: Preset): string {
  return `${about} In full: ${plural(runs, "run")}, about ${formatDuration(estimated_s)}.`;
}
