import { joinUnit } from "./number";

/** How long something takes, to the minute where it takes hours: `45 s`, `7 min`, `1 h 20 min`. */
export function formatDuration(seconds: number): string {
  if (seconds < 60) return joinUnit(String(Math.max(1, Math.round(seconds))), "s");
  const minutes = Math.round(seconds / 60);
  if (minutes < 60) return joinUnit(String(minutes), "min");
  const hours = joinUnit(String(Math.floor(minutes / 60)), "h");
  return minutes % 60 === 0 ? hours : `${hours} ${joinUnit(String(minutes % 60), "min")}`;
}
