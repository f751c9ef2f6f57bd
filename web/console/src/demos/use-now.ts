import { useEffect, useState } from "preact/hooks";

/** The time, ms since 1970, drawn anew at an interval and when the page is shown again. */
export function useNow(interval_ms: number): number {
  const [now, setNow] = useState(() => Date.now());
  useEffect(() => {
    const follow = () => document.hidden || setNow(Date.now());
    const timer = setInterval(follow, interval_ms);
    document.addEventListener("visibilitychange", follow);
    return () => {
      clearInterval(timer);
      document.removeEventListener("visibilitychange", follow);
    };
  }, [interval_ms]);
  return now;
}
