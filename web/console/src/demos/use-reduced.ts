import { useCallback, useEffect, useRef, useState } from "preact/hooks";

/** Time between two drawings, ms: messages may come faster than anybody can read. */
const DRAW_MS = 60;

/**
 * A reducer's state for what comes often: each action is reduced at once, and what came meanwhile is drawn together.
 * The first after a pause is drawn without delay. Gives what is to be drawn, how to act, a look at the state as it
 * is now; the last draws it at once, for what must be seen together with another change.
 */
export function useReduced<S, A>(
  reduce: (state: S, action: A) => S,
  initial: S,
): [S, (action: A) => void, () => S, () => void] {
  const latest = useRef(initial);
  const [shown, setShown] = useState(initial);
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  const drawnAt = useRef(Number.NEGATIVE_INFINITY);

  const draw = useCallback(() => {
    clearTimeout(timer.current);
    timer.current = undefined;
    drawnAt.current = performance.now();
    setShown(latest.current);
  }, []);
  const dispatch = useCallback(
    (action: A) => {
      latest.current = reduce(latest.current, action);
      if (timer.current !== undefined) return;
      const wait = drawnAt.current + DRAW_MS - performance.now();
      timer.current = setTimeout(draw, Math.max(0, wait));
    },
    [reduce, draw],
  );
  useEffect(() => () => clearTimeout(timer.current), []);
  const peek = useCallback(() => latest.current, []);
  return [shown, dispatch, peek, draw];
}
