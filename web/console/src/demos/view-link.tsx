import type { ComponentProps } from "preact";
import { step } from "../console/router";

/** A link to another view of the page that is shown: the page, its connection with it, goes on. */
export function ViewLink({ href, ...others }: ComponentProps<"a"> & { href: string }) {
  const follow = (event: MouseEvent) => {
    if (event.button !== 0) return;
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    step(href);
  };
  return <a {...others} href={href} onClick={follow} />;
}
