import { useEffect, useId, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Drawing } from "./plot-style";
import { spoken, Tooltip, type TooltipContent } from "./tooltip";

export interface ChartProps {
  title: string;
  /** Unit and scale, beside the title. */
  note: string;
  /** What exactly is drawn, below the title; small charts leave it to the list of metrics. */
  detail?: string;
  /** For readers who do not see the drawing. */
  description: string;
  size?: ChartSize;
  draw: (width: number, height: number) => Drawing;
  /** Values the cursor can stand on, ascending. */
  stops: readonly number[];
  cursor: number | null;
  onCursor: (value: number | null) => void;
  tooltip: (value: number) => TooltipContent;
}

export type ChartSize = "wide" | "normal" | "small";

const HEIGHT = { wide: 336, normal: 250, small: 200 } as const;
/** Widths on paper (A4 with 12 mm margins at 96 pixels an inch); the sheet scales what differs. */
const PRINT_WIDTH = { wide: 700, normal: 344, small: 344 } as const;

/** A drawing that fits its column, with a cursor that mouse, finger and arrow keys move. */
export function Chart(props: ChartProps) {
  const { title, note, description, size = "normal", draw, stops, cursor, onCursor } = props;
  const height = HEIGHT[size];
  const host = useRef<HTMLDivElement>(null);
  const [drawing, setDrawing] = useState<Drawing | null>(null);
  const [byKeys, setByKeys] = useState(false);
  const titleId = useId();

  useLayoutEffect(() => {
    const element = host.current;
    if (element === null) return;
    const render = (width: number) => {
      const next = draw(width, height);
      next.svg.setAttribute("aria-hidden", "true");
      // Plot brings a sheet with each drawing, which the page's policy would refuse; chart.css has its rules.
      next.svg.querySelector("style")?.remove();
      element.replaceChildren(next.svg);
      return next;
    };
    const refit = () => {
      if (element.clientWidth > 0) setDrawing(render(element.clientWidth));
    };
    const forPaper = () => render(PRINT_WIDTH[size]);
    refit();
    let width = element.clientWidth;
    const observer = new ResizeObserver(() => {
      if (element.clientWidth === width || matchMedia("print").matches) return;
      width = element.clientWidth;
      refit();
    });
    observer.observe(element);
    addEventListener("beforeprint", forPaper);
    addEventListener("afterprint", refit);
    return () => {
      observer.disconnect();
      removeEventListener("beforeprint", forPaper);
      removeEventListener("afterprint", refit);
    };
  }, [draw, height, size]);

  useEffect(() => {
    if (cursor === null) setByKeys(false);
  }, [cursor]);

  const point = (event: PointerEvent) => {
    const box = host.current?.getBoundingClientRect();
    if (box === undefined || drawing === null) return;
    setByKeys(false);
    onCursor(nearest(stops, event.clientX - box.left, drawing.place));
  };

  const step = (event: KeyboardEvent) => {
    const index = cursor === null ? -1 : stops.indexOf(cursor);
    const next = {
      ArrowRight: index + 1,
      ArrowLeft: index <= 0 ? 0 : index - 1,
      Home: 0,
      End: stops.length - 1,
    }[event.key];
    if (event.key === "Escape") onCursor(null);
    else if (next !== undefined) {
      event.preventDefault();
      setByKeys(true);
      onCursor(stops[Math.min(next, stops.length - 1)] ?? null);
    }
  };

  return (
    <figure class={`chart chart-${size}`}>
      <ChartCaption
        id={titleId}
        title={title}
        note={note}
        detail={size === "small" ? "" : props.detail}
      />
      {/* biome-ignore lint/a11y/useSemanticElements: no element exists for an explorable drawing */}
      <div
        class="plot"
        style={{ "--height": `${height}px` }}
        role="group"
        aria-labelledby={titleId}
        aria-description={`${description} Arrow keys read the values.`}
        // biome-ignore lint/a11y/noNoninteractiveTabindex: arrow keys move the cursor
        tabIndex={0}
        onPointerMove={point}
        onPointerDown={point}
        onPointerLeave={() => onCursor(null)}
        onKeyDown={step}
        onBlur={() => onCursor(null)}
      >
        <div ref={host} class="drawing" />
        {cursor !== null && drawing !== null && (
          <Tooltip
            content={props.tooltip(cursor)}
            x={drawing.place(cursor)}
            left={drawing.left}
            right={drawing.right}
            bottom={drawing.bottom}
          />
        )}
        {/* Only for keys: a moving mouse would never stop talking. */}
        <p class="visually-hidden" aria-live="polite">
          {byKeys && cursor !== null ? spoken(props.tooltip(cursor)) : ""}
        </p>
      </div>
    </figure>
  );
}

interface ChartCaptionProps {
  id: string;
  title: string;
  note: string;
  detail?: string | undefined;
}

export function ChartCaption({ id, title, note, detail = "" }: ChartCaptionProps) {
  return (
    <figcaption id={id}>
      <strong>{title}</strong> <span class="note">{note}</span>
      {detail !== "" && <span class="note detail">{detail}</span>}
    </figcaption>
  );
}

function nearest(
  stops: readonly number[],
  pixel: number,
  place: (value: number) => number,
): number | null {
  let best: number | null = null;
  let distance = Number.POSITIVE_INFINITY;
  for (const stop of stops) {
    const away = Math.abs(place(stop) - pixel);
    if (away < distance) [best, distance] = [stop, away];
  }
  return best;
}
