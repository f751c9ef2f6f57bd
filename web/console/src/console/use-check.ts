import { useEffect, useState } from "preact/hooks";
import type { ExperimentCheck, ExperimentRequest } from "../generated/console";
import { type ApiError, ask } from "../live/http-api";
import { asApiError } from "../live/use-resource";

/** Time without typing before the server is asked, ms. */
const PAUSE_MS = 400;

/** What the server thinks of an experiment; the latest answer stays while another text is looked at. */
export interface CheckState {
  check: ExperimentCheck | null;
  problem: ApiError | null;
  /** Whether `check` is of the text as it is now. */
  isCurrent: boolean;
}

/** Has an experiment's text checked when it has stopped changing; null is none yet. */
export function useCheck(toml: string | null, profile: string | null): CheckState {
  const [state, setState] = useState<CheckState>({ check: null, problem: null, isCurrent: false });
  useEffect(() => {
    if (toml === null) return;
    const controller = new AbortController();
    setState((before) => ({ ...before, isCurrent: false }));
    const timer = setTimeout(async () => {
      try {
        const { signal } = controller;
        const body = requestOf(toml, profile);
        const check = await ask<ExperimentCheck>("POST", "/api/experiments/check", body, signal);
        setState({ check, problem: null, isCurrent: true });
      } catch (error) {
        if (controller.signal.aborted) return;
        setState((before) => ({ ...before, problem: asApiError(error) }));
      }
    }, PAUSE_MS);
    return () => {
      clearTimeout(timer);
      controller.abort();
    };
  }, [toml, profile]);
  return state;
}

/** The body with which an experiment is checked or started. */
export function requestOf(toml: string, profile: string | null): ExperimentRequest {
  return profile === null ? { toml } : { toml, profile };
}
