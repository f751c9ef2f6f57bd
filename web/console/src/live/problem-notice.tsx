import { useEffect, useRef } from "preact/hooks";
import type { ApiError } from "./http-api";
import { isFocusLost } from "./use-focus";

interface ProblemNoticeProps {
  /** What could not be done: `The results cannot be shown`. */
  title: string;
  problem: ApiError | null;
  /** Asks again. */
  retry?: () => void;
}

/** What went wrong and what to do; read aloud when it appears. */
export function ProblemNotice({ title, problem, retry }: ProblemNoticeProps) {
  const box = useRef<HTMLDivElement>(null);
  const hasRetried = useRef(false);
  useEffect(() => {
    if (problem !== null || !hasRetried.current) return;
    hasRetried.current = false;
    // The button that was pressed is gone: the keyboard goes on from here.
    if (isFocusLost()) box.current?.focus();
  }, [problem]);
  return (
    <div role="alert" ref={box} tabIndex={-1}>
      {problem !== null && (
        <div class="notice notice-loud">
          <p>
            <strong>{title}.</strong> {problem.message}
          </p>
          {retry !== undefined && (
            <button
              type="button"
              onClick={() => {
                hasRetried.current = true;
                retry();
              }}
            >
              Try again
            </button>
          )}
        </div>
      )}
    </div>
  );
}
