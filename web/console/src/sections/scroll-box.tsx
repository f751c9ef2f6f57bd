import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";

interface ScrollBoxProps {
  /** What is inside, for those who reach it by keyboard. */
  label: string;
  children: ComponentChildren;
}

/** Holds a table that may be wider than the page, and says so when it is. */
export function ScrollBox({ label, children }: ScrollBoxProps) {
  const box = useRef<HTMLElement>(null);
  const [wider, setWider] = useState(false);

  useLayoutEffect(() => {
    const element = box.current;
    if (element === null) return;
    const measure = () => setWider(element.scrollWidth > element.clientWidth + 1);
    measure();
    const observer = new ResizeObserver(measure);
    for (const one of [element, ...element.children]) observer.observe(one);
    return () => observer.disconnect();
  }, []);

  return (
    <>
      {wider && (
        <p class="scroll-hint" aria-hidden="true">
          wider than the page: scroll sideways →
        </p>
      )}
      <section ref={box} class="scroll" tabIndex={wider ? 0 : undefined} aria-label={label}>
        {children}
      </section>
    </>
  );
}
