import { useEffect, useRef, useState } from "preact/hooks";
import { type Domain, linearTicks } from "../charts/axis";
import { spreadLabels } from "../charts/label-places";
import { formatChange } from "../format/number";
import { changeDomain, HEIGHT, heightOf, stepPath, UNIT_MS, WIDTH } from "./ticker-scale";
import { changeOf, type Quote, WINDOW_MS } from "./ticker-state";

/** Dashes of the lines by place in the palette, so that no line is known by its colour alone. */
const DASHES = [undefined, "7 3", "2 3", "12 3 2 3", "5 5", "9 2 2 2 2 2"];
/** Distance of two names at the right edge, in units of the height: 18 of its 300 pixels. */
const LABEL_GAP = (HEIGHT * 18) / 300;
/** Least move of the lines, in units: about half a pixel, below which drawing them costs more than one sees. */
const MOVE = 0.6;
/** Moments that the axis names, seconds ago. */
const AGES = [90, 60, 30, 0];

interface TickerChartProps {
  quotes: readonly Quote[];
  /** By symbol, the place in the palette. */
  slots: ReadonlyMap<string, number>;
  isPaused: boolean;
}

/** Changes since the open over the latest time, which glide to the left; the table says the same in figures. */
export function TickerChart({ quotes, slots, isPaused }: TickerChartProps) {
  // Times on the page's clock grow without end; coordinates begin where the chart did.
  const [base] = useState(() => performance.now());
  const lines = useRef<SVGGElement>(null);
  useGlide(lines, base, { quotes, isPaused });
  const domain = changeDomain(quotes);
  const ticks = linearTicks(domain, 6);
  return (
    <figure class="ticker-chart">
      <figcaption>
        Change since the opening <span class="note">percent, the last {WINDOW_MS / 1000} s</span>
      </figcaption>
      <div class="ticker-plot">
        <svg
          viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
          preserveAspectRatio="none"
          role="img"
          aria-label={describe(quotes)}
        >
          {AGES.map((age) => (
            <line key={age} class="live-grid" {...vertical(age)} y1="0" y2={HEIGHT} />
          ))}
          {ticks.map((tick) => (
            <line
              key={tick}
              class={tick === 0 ? "live-axis" : "live-grid"}
              x1="0"
              x2={WIDTH}
              y1={heightOf(tick, domain)}
              y2={heightOf(tick, domain)}
            />
          ))}
          <g ref={lines}>
            {quotes.map((quote) => (
              <path
                key={quote.symbol}
                d={stepPath(quote, domain, base)}
                {...lineLook(slots.get(quote.symbol))}
              />
            ))}
          </g>
        </svg>
        <Labels quotes={quotes} slots={slots} domain={domain} ticks={ticks} />
      </div>
      <div class="ticker-times note" aria-hidden="true">
        {AGES.map((age) => (
          <span key={age}>{age === 0 ? "now" : `−${age} s`}</span>
        ))}
      </div>
    </figure>
  );
}

/** Text stands outside of the drawing, which is stretched to its box. */
function Labels({
  quotes,
  slots,
  domain,
  ticks,
}: Pick<TickerChartProps, "quotes" | "slots"> & { domain: Domain; ticks: readonly number[] }) {
  const wishes = quotes.map((quote) => heightOf(changeOf(quote, quote.price_cents), domain));
  const places = spreadLabels(wishes, LABEL_GAP, 0, HEIGHT);
  return (
    <div aria-hidden="true">
      {ticks.map((tick) => (
        <span key={tick} class="ticker-tick" style={placed(heightOf(tick, domain))}>
          {formatChange(tick)}
        </span>
      ))}
      {quotes.map((quote, index) => (
        <span key={quote.symbol} class="ticker-name" style={placed(places[index] ?? 0)}>
          <Swatch slot={slots.get(quote.symbol)} />
          {quote.symbol}
        </span>
      ))}
    </div>
  );
}

/** A piece of a line, as the chart draws it. */
export function Swatch({ slot }: { slot: number | undefined }) {
  return (
    <svg class="swatch" width="22" height="8" viewBox="0 0 22 8" aria-hidden="true">
      {slot !== undefined && <path d="M0 4H22" {...lineLook(slot)} />}
    </svg>
  );
}

/** Moves the lines with the time while somebody looks; with reduced motion only as often as they are drawn. */
function useGlide(
  lines: { readonly current: SVGGElement | null },
  base: number,
  { quotes, isPaused }: Pick<TickerChartProps, "quotes" | "isPaused">,
): void {
  // Lines that are drawn anew are at their place at once.
  useEffect(() => {
    if (isPaused) return;
    const wish = matchMedia("(prefers-reduced-motion: reduce)");
    let frame = 0;
    let moved = Number.NEGATIVE_INFINITY;
    const move = () => {
      const passed = (performance.now() - base) / UNIT_MS;
      if (passed - moved >= MOVE) {
        moved = passed;
        lines.current?.setAttribute("transform", `translate(${(WIDTH - passed).toFixed(1)} 0)`);
      }
      // A hidden page has no frames, so that nothing is moved that nobody sees.
      if (!wish.matches) frame = requestAnimationFrame(move);
    };
    move();
    return () => cancelAnimationFrame(frame);
  }, [lines, base, isPaused, quotes]);
}

function vertical(age: number): { x1: number; x2: number } {
  const x = WIDTH * (1 - (age * 1000) / WINDOW_MS);
  return { x1: x, x2: x };
}

function lineLook(slot = 0) {
  return {
    class: "ticker-line",
    style: { stroke: `var(--series-${(slot % 8) + 1})` },
    "stroke-dasharray": DASHES[slot % DASHES.length],
  };
}

/** As a share of the height, by which the style sheet moves it: a place that changes would lay the page out anew. */
function placed(height: number): { "--share": string } {
  return { "--share": (height / HEIGHT).toFixed(4) };
}

function describe(quotes: readonly Quote[]): string {
  const latest = quotes.map(
    (quote) => `${quote.symbol} ${formatChange(changeOf(quote, quote.price_cents))}`,
  );
  return `Lines of the change since the opening. Latest: ${latest.join(", ") || "no stock is chosen"}`;
}
