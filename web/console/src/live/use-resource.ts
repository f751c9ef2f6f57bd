import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { ApiError, ask } from "./http-api";

/** Something that the server is asked for. What came last stays while it is asked for again. */
export interface Resource<T> {
  data: T | null;
  problem: ApiError | null;
  isLoading: boolean;
  reload: () => void;
}

/**
 * Asks the server for the JSON at a path, and again when the path changes or `reload` is called; null asks nothing.
 * `fields` gives additional header fields for each request.
 */
export function useResource<T>(
  path: string | null,
  fields?: () => Record<string, string>,
): Resource<T> {
  const latestFields = useRef(fields);
  latestFields.current = fields;
  const [attempt, setAttempt] = useState(0);
  const [shown, setShown] = useState<{ path: string | null; data: T | null }>({
    path,
    data: null,
  });
  const [problem, setProblem] = useState<ApiError | null>(null);
  const [isLoading, setLoading] = useState(path !== null);

  // An attempt is what asks again.
  useEffect(() => {
    if (path === null) return;
    const controller = new AbortController();
    setLoading(true);
    ask<T>("GET", path, undefined, controller.signal, latestFields.current?.())
      .then((data) => {
        setShown({ path, data });
        setProblem(null);
        setLoading(false);
      })
      .catch((error) => {
        if (controller.signal.aborted) return;
        setProblem(asApiError(error));
        setLoading(false);
      });
    return () => controller.abort();
  }, [path, attempt]);

  const reload = useCallback(() => setAttempt((count) => count + 1), []);
  return { data: shown.path === path ? shown.data : null, problem, isLoading, reload };
}

/** An error of any kind as one that can be shown. */
export function asApiError(error: unknown): ApiError {
  return error instanceof ApiError ? error : new ApiError("failed", `${error}`);
}
