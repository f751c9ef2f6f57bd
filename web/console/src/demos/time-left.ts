import { plural } from "../format/number";

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** How long something still takes, in its two largest units: `2 d 4 h`, `3 min 05 s`, `9 s`. */
export function formatTimeLeft(left_ms: number): string {
  const left = Math.max(0, Math.ceil(left_ms / SECOND) * SECOND);
  const part = (unit: number, below = Number.POSITIVE_INFINITY) =>
    Math.floor((left % below) / unit);
  if (left >= DAY) return `${part(DAY)} d ${part(HOUR, DAY)} h`;
  if (left >= HOUR) return `${part(HOUR)} h ${part(MINUTE, HOUR)} min`;
  if (left >= MINUTE) return `${part(MINUTE)} min ${`${part(SECOND, MINUTE)}`.padStart(2, "0")} s`;
  return `${part(SECOND)} s`;
}

/** A duration as a choice: `1 hour`. */
export function formatDuration(duration_ms: number): string {
  if (duration_ms % DAY === 0) return plural(duration_ms / DAY, "day");
  if (duration_ms % HOUR === 0) return plural(duration_ms / HOUR, "hour");
  return plural(duration_ms / MINUTE, "minute");
}
