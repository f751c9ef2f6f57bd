import { useEffect, useRef, useState } from "preact/hooks";
import type { ApiError } from "../live/http-api";
import { asApiError } from "../live/use-resource";

/** Something that one asks the server to do: whether it is being done, and why it could not be. */
export interface Attempt {
  isBusy: boolean;
  problem: ApiError | null;
  /** Does it; nothing while it is being done already. True where it was done. */
  run: (work: () => Promise<unknown>) => Promise<boolean>;
  /** Forgets the problem. */
  clear: () => void;
}

/** Keeps what became of the latest attempt. */
export function useAttempt(): Attempt {
  const [isBusy, setBusy] = useState(false);
  const [problem, setProblem] = useState<ApiError | null>(null);
  // Two clicks may come before the first is drawn.
  const isRunning = useRef(false);
  const isGone = useRef(false);
  useEffect(
    () => () => {
      isGone.current = true;
    },
    [],
  );
  const run = async (work: () => Promise<unknown>) => {
    if (isRunning.current) return false;
    isRunning.current = true;
    setBusy(true);
    let failure: ApiError | null = null;
    try {
      await work();
    } catch (error) {
      failure = asApiError(error);
    }
    isRunning.current = false;
    if (!isGone.current) {
      setBusy(false);
      setProblem(failure);
    }
    return failure === null;
  };
  return { isBusy, problem, run, clear: () => setProblem(null) };
}
