import { useEffect, useState } from "preact/hooks";

/** Where the reader is: the page, and what was chosen on it. */
export interface Place {
  path: string;
  query: URLSearchParams;
  /** Differs after each link: the key of what shall begin anew when a link leads to the page that is shown. */
  visit: number;
}

/** Told after each change of the address that this script makes; the browser tells of its own. */
const CHANGED = "pushlab:place";

/** `/live/` is `/live`. */
export function pathOf(location: Pick<Location, "pathname">): string {
  return location.pathname.replace(/\/+$/, "") || "/";
}

/** The place after the one before: a jump within a page, of which history knows no visit, is still the same visit. */
export function nextPlace(
  before: Place | null,
  location: Pick<Location, "pathname" | "search">,
  state: unknown,
): Place {
  const path = pathOf(location);
  const query = new URLSearchParams(location.search);
  const { visit } = (state ?? {}) as { visit?: unknown };
  if (typeof visit === "number") return { path, query, visit };
  const isJump = before?.path === path && before.query.toString() === query.toString();
  return { path, query, visit: isJump ? before.visit : 0 };
}

/** The address of a page with its choices; those that are null are left out. */
export function hrefOf(path: string, choices: Readonly<Record<string, string | null>>): string {
  return withQuery(path, changeQuery(new URLSearchParams(), choices));
}

/** A copy of a query with some choices changed; null removes one. */
export function changeQuery(
  query: URLSearchParams,
  choices: Readonly<Record<string, string | null>>,
): URLSearchParams {
  const next = new URLSearchParams(query);
  for (const [name, value] of Object.entries(choices)) {
    if (value === null) next.delete(name);
    else next.set(name, value);
  }
  return next;
}

/** Goes to another page of the console, as a link to it would. */
export function navigate(href: string): void {
  history.pushState({ visit: Date.now() }, "", href);
  scrollTo(0, 0);
  dispatchEvent(new Event(CHANGED));
}

/** Goes to another view of the page that is shown, which goes on; Back leads to the view before. */
export function step(href: string): void {
  history.pushState(history.state, "", href);
  dispatchEvent(new Event(CHANGED));
}

/** Changes choices of the present page in place, so that Back leaves the page. */
export function choose(choices: Readonly<Record<string, string | null>>): void {
  const query = new URLSearchParams(location.search);
  const href = withQuery(location.pathname, changeQuery(query, choices)) + location.hash;
  history.replaceState(history.state, "", href);
  dispatchEvent(new Event(CHANGED));
}

/** Time without typing before the address follows, ms: browsers refuse to change it too often. */
const PAUSE_MS = 500;

/** Makes choices that are typed part of the address once the typing pauses; null chooses nothing. */
export function useLateChoices(choices: Readonly<Record<string, string | null>> | null): void {
  useEffect(() => {
    if (choices === null) return;
    const timer = setTimeout(() => choose(choices), PAUSE_MS);
    return () => clearTimeout(timer);
  }, [choices]);
}

/** The place as it is now; follows links, Back and Forward, and choices. */
export function usePlace(): Place {
  const [place, setPlace] = useState(() => nextPlace(null, location, history.state));
  useEffect(() => {
    const follow = () => setPlace((before) => nextPlace(before, location, history.state));
    addEventListener("popstate", follow);
    addEventListener(CHANGED, follow);
    // The address may have changed between the first drawing and now.
    follow();
    return () => {
      removeEventListener("popstate", follow);
      removeEventListener(CHANGED, follow);
    };
  }, []);
  return place;
}

/** What of a click decides whether it stays within the console. */
export interface LinkClick {
  button: number;
  defaultPrevented: boolean;
  hasModifier: boolean;
  link: { href: string; target: string; download: boolean };
}

/**
 * Where within the console a click leads, or null where the browser shall follow the link itself: to another site, a
 * report, a new tab, or a section of the page that is shown.
 */
export function innerTarget(
  click: LinkClick,
  here: string,
  isPage: (path: string) => boolean,
): string | null {
  const { button, defaultPrevented, hasModifier, link } = click;
  if (button !== 0 || defaultPrevented || hasModifier) return null;
  if ((link.target !== "" && link.target !== "_self") || link.download) return null;
  const from = new URL(here);
  const to = new URL(link.href, here);
  if (to.origin !== from.origin || !isPage(pathOf(to))) return null;
  const isSame = to.pathname === from.pathname && to.search === from.search;
  return isSame && to.hash !== "" ? null : to.pathname + to.search + to.hash;
}

/** Lets ordinary links within the document lead from page to page without loading a document. */
export function useInnerLinks(isPage: (path: string) => boolean): void {
  useEffect(() => {
    const follow = (event: MouseEvent) => {
      const link = event.target instanceof Element ? event.target.closest("a[href]") : null;
      if (!(link instanceof HTMLAnchorElement)) return;
      const click: LinkClick = {
        button: event.button,
        defaultPrevented: event.defaultPrevented,
        hasModifier: event.metaKey || event.ctrlKey || event.shiftKey || event.altKey,
        link: { href: link.href, target: link.target, download: link.hasAttribute("download") },
      };
      const target = innerTarget(click, location.href, isPage);
      if (target === null) return;
      event.preventDefault();
      navigate(target);
    };
    document.addEventListener("click", follow);
    return () => document.removeEventListener("click", follow);
  }, [isPage]);
}

function withQuery(path: string, query: URLSearchParams): string {
  const text = query.toString();
  return text === "" ? path : `${path}?${text}`;
}
