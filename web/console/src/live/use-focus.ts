import type { RefObject } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";

/** Whether the focus is nowhere, as when what had it is gone: the keyboard would begin at the top of the page. */
export function isFocusLost(): boolean {
  return document.activeElement === null || document.activeElement === document.body;
}

/** Whether somebody is typing: what they type must not go elsewhere. */
function isTyping(): boolean {
  return document.activeElement?.matches("input, textarea") ?? false;
}

/**
 * Gives the focus to the ref's element when another view is shown, so that who listens knows where they are; a view of
 * null is none yet. With `isDue` only where that holds once the view is drawn, and never while somebody is typing.
 */
export function useFocusOn<T extends HTMLElement>(
  view: string | null,
  isDue: () => boolean = () => true,
): RefObject<T | null> {
  const element = useRef<T>(null);
  const shown = useRef(view);
  // With the view itself and not after the next frame: by then somebody may be typing in a field of it.
  useLayoutEffect(() => {
    const before = shown.current;
    shown.current = view;
    const isOther = view !== before && view !== null && before !== null;
    if (isOther && !isTyping() && isDue()) element.current?.focus();
  }, [view]);
  return element;
}
