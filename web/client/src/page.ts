/** What the page's life means for a connection. */
export interface PageListener {
  /** Nothing can arrive from now on. */
  pause(state: "offline" | "waiting", reason: string): void;
  /** It can again. */
  resume(): void;
  /** A person looks at the page. */
  shown(): void;
}

/** Where a page's events come from: the global object, or a test's stand-in. */
export interface PageEvents {
  addEventListener?: EventTarget["addEventListener"];
  document?: EventTarget & { readonly visibilityState: string };
}

/**
 * Follows the page, and gives how to stop. Without a page, in Node, nothing happens.
 *
 * A page that is frozen or kept for the back button runs no timers, and one with an open WebSocket is not kept at all:
 * so the connection is given up, and resumed with its cursor.
 */
export function followPage(events: PageEvents, listener: PageListener): () => void {
  const controller = new AbortController();
  const on = (target: PageEvents | undefined, type: string, then: () => void) =>
    target?.addEventListener?.(type, then, { signal: controller.signal });
  const freeze = () => listener.pause("waiting", "the page is frozen");
  const { document } = events;
  on(events, "offline", () => listener.pause("offline", "the browser is offline"));
  on(events, "online", () => listener.resume());
  on(events, "pagehide", freeze);
  on(events, "pageshow", () => listener.resume());
  on(document, "freeze", freeze);
  on(document, "resume", () => listener.resume());
  on(document, "visibilitychange", () => {
    if (document?.visibilityState === "visible") listener.shown();
  });
  return () => controller.abort();
}
