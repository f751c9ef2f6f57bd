import { useEffect, useRef, useState } from "preact/hooks";

/** Time between two drawings for readers who want little motion, ms. */
const CALM_MS = 5000;

/** A value that is drawn as it comes; for readers who asked for reduced motion, every five seconds. */
export function usePace<T>(value: T): T {
  const latest = useRef(value);
  latest.current = value;
  const [calm, setCalm] = useState<T | null>(null);
  useEffect(() => {
    const wish = matchMedia("(prefers-reduced-motion: reduce)");
    let timer: ReturnType<typeof setInterval> | undefined;
    const follow = () => {
      clearInterval(timer);
      timer = undefined;
      setCalm(wish.matches ? latest.current : null);
      if (wish.matches) timer = setInterval(() => setCalm(latest.current), CALM_MS);
    };
    follow();
    wish.addEventListener("change", follow);
    return () => {
      clearInterval(timer);
      wish.removeEventListener("change", follow);
    };
  }, []);
  return calm ?? value;
}
