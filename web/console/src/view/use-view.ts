import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { parseView, serializeView, type ViewState } from "./view-state";

export type UpdateView = (change: Partial<ViewState>) => void;

/** The view as the URL has it; an update rewrites the URL in place, so that Back leaves the report. */
export function useView(): [ViewState, UpdateView] {
  const [view, setView] = useState(() => parseView(location.hash));
  const latest = useRef(view);

  const show = useCallback((next: ViewState) => {
    latest.current = next;
    setView(next);
  }, []);

  useEffect(() => {
    const follow = () => {
      const next = parseView(location.hash);
      show(next);
      goTo(next.at);
    };
    goTo(latest.current.at);
    addEventListener("hashchange", follow);
    return () => removeEventListener("hashchange", follow);
  }, [show]);

  const update = useCallback<UpdateView>(
    (change) => {
      const next = { ...latest.current, ...change };
      const fragment = serializeView(next);
      const page = location.pathname + location.search;
      history.replaceState(null, "", fragment === "" ? page : `${page}#${fragment}`);
      show(next);
    },
    [show],
  );

  return [view, update];
}

/** Scrolls to a section and moves the focus there, as a plain fragment link would. */
export function goTo(section: string | null): void {
  const target = section === null ? null : document.getElementById(section);
  target?.scrollIntoView();
  target?.focus({ preventScroll: true });
}
