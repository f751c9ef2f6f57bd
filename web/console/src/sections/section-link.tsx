import type { ComponentChildren } from "preact";
import { goTo } from "../view/use-view";
import { serializeView, type ViewState } from "../view/view-state";

interface SectionLinkProps {
  view: ViewState;
  section: string;
  children: ComponentChildren;
}

/** A link to a section that keeps the rest of the view. */
export function SectionLink({ view, section, children }: SectionLinkProps) {
  const target = `#${serializeView({ ...view, at: section })}`;
  return (
    // The click jumps by itself: a second one on the same link changes no fragment.
    <a href={target} onClick={() => requestAnimationFrame(() => goTo(section))}>
      {children}
    </a>
  );
}
