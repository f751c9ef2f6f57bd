import type { ApiError } from "./http-api";

interface ProblemNoticeProps {
  /** What could not be done: `The results cannot be shown`. */
  title: string;
  problem: ApiError | null;
  /** Asks again. */
  retry?: () => void;
}

/** What went wrong and what to do; read aloud when it appears. */
export function ProblemNotice({ title, problem, retry }: ProblemNoticeProps) {
  return (
    <div role="alert">
      {problem !== null && (
        <div class="notice notice-loud">
          <p>
            <strong>{title}.</strong> {problem.message}
          </p>
          {retry !== undefined && (
            <button type="button" onClick={retry}>
              Try again
            </button>
          )}
        </div>
      )}
    </div>
  );
}
