import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { choose, usePlace } from "../console/router";
import { formatChange, formatCount, plural } from "../format/number";
import { ProblemNotice } from "../live/problem-notice";
import { Readings } from "../live/readings";
import { useTransport } from "../live/transport-select";
import { useConnection } from "../live/use-connection";
import { usePace } from "../live/use-pace";
import { useResource } from "../live/use-resource";
import { DemoFrame } from "./demo-frame";
import { readTick, type TickerSnapshot } from "./interface";
import { formatMoney } from "./money";
import { Swatch, TickerChart } from "./ticker-chart";
import { assignSlots, MAX_CHOSEN, readChosen, sparkPath, writeChosen } from "./ticker-scale";
import {
  changeOf,
  EMPTY_TICKER,
  messagesPerSecond,
  type Quote,
  reduceTicker,
  type TickerState,
} from "./ticker-state";
import { useNow } from "./use-now";
import { useReduced } from "./use-reduced";

const CHANNELS = ["demo.ticker"];
/** Width and height of a sparkline, pixels. */
const SPARK = [96, 24] as const;

/** Stock prices from the server's own back end. */
export function TickerPage() {
  const snapshot = useResource<TickerSnapshot>("/api/demos/ticker");
  const [state, dispatch] = useReduced(reduceTicker, EMPTY_TICKER);
  const transport = useTransport();
  const plan = snapshot.data && { channels: CHANNELS, transport, after: snapshot.data.cursor };
  const live = useConnection(plan, {
    message: ({ data }) => {
      const tick = readTick(data);
      if (tick !== null) dispatch({ kind: "tick", tick, at: performance.now() });
    },
    gap: () => {
      dispatch({ kind: "gap" });
      snapshot.reload();
    },
  });
  const { data } = snapshot;
  useEffect(() => {
    if (data !== null) dispatch({ kind: "snapshot", snapshot: data, at: performance.now() });
  }, [data, dispatch]);

  return (
    <DemoFrame
      live={live}
      about="A back end in this server publishes the prices of invented companies four times a second; every page that is open gets them at once, over the transport that you choose."
      meters={<Feed state={state} />}
    >
      <ProblemNotice
        title="The prices cannot be loaded"
        problem={snapshot.problem}
        retry={snapshot.reload}
      />
      {state.gaps > 0 && (
        <p class="notice" role="status">
          Prices were missed {state.gaps === 1 ? "once" : `${formatCount(state.gaps)} times`}: this
          page was away for longer than the server remembers, or the server was restarted. They were
          loaded anew.
        </p>
      )}
      <Market state={state} />
    </DemoFrame>
  );
}

/** Chart and table; both stand still while the reader wants that. */
function Market({ state }: { state: TickerState }) {
  const [held, setHeld] = useState<TickerState | null>(null);
  const quotes = usePace((held ?? state).quotes);
  const chosen = useChosen(quotes);
  const slots = useSlots(chosen);
  const inChart = useMemo(
    () => quotes?.filter((quote) => slots.has(quote.symbol)) ?? [],
    [quotes, slots],
  );
  const toggle = (symbol: string) => {
    const next = chosen.includes(symbol)
      ? chosen.filter((one) => one !== symbol)
      : [...chosen, symbol];
    choose({ stocks: writeChosen(next) });
  };
  return (
    <>
      <div class="ticker-head">
        <h2>Prices</h2>
        <button type="button" onClick={() => setHeld(held === null ? state : null)}>
          {held === null ? "Pause" : "Go on"}
        </button>
      </div>
      <TickerChart quotes={inChart} slots={slots} isPaused={held !== null} />
      <div class="scroll ticker-box">
        <table class="data ticker-table">
          <caption class="visually-hidden">
            Prices of all stocks, and which of them are in the chart
          </caption>
          <thead>
            <tr>
              <th scope="col">Stock, in the chart or not</th>
              <th scope="col" class="number">
                Price
              </th>
              <th scope="col" class="number">
                Since the opening
              </th>
              <th scope="col" class="ticker-spark">
                Last 90 s
              </th>
            </tr>
          </thead>
          <tbody>
            {quotes?.map((quote) => (
              <Row
                key={quote.symbol}
                quote={quote}
                slot={slots.get(quote.symbol)}
                isFull={chosen.length >= MAX_CHOSEN}
                toggle={toggle}
              />
            ))}
          </tbody>
        </table>
      </div>
      <p class="note">At most {MAX_CHOSEN} stocks are in the chart at once.</p>
    </>
  );
}

interface RowProps {
  quote: Quote;
  /** The place in the palette of one that is in the chart. */
  slot: number | undefined;
  /** Whether the chart takes no more. */
  isFull: boolean;
  toggle: (symbol: string) => void;
}

function Row({ quote, slot, isFull, toggle }: RowProps) {
  const { symbol, name, price_cents } = quote;
  const change = changeOf(quote, price_cents);
  const trend = price_cents === quote.open_cents ? "flat" : change > 0 ? "up" : "down";
  const isChosen = slot !== undefined;
  return (
    <tr>
      <th scope="row">
        <label class="ticker-stock">
          <input
            type="checkbox"
            checked={isChosen}
            disabled={!isChosen && isFull}
            onChange={() => toggle(symbol)}
          />
          <Swatch slot={slot} />
          <strong>{symbol}</strong>
          <span class="ticker-company">{name}</span>
        </label>
      </th>
      <td class="number">{formatMoney(price_cents)}</td>
      <td class={`number trend-${trend}`}>
        <span aria-hidden="true">{{ up: "▲", down: "▼", flat: "■" }[trend]}</span>{" "}
        {formatChange(change)}
      </td>
      <td class="ticker-spark">
        <Sparkline quote={quote} />
      </td>
    </tr>
  );
}

function Sparkline({ quote }: { quote: Quote }) {
  const path = useMemo(() => sparkPath(quote.points, ...SPARK), [quote.points]);
  const [width, height] = SPARK;
  return (
    <svg width={width} height={height} viewBox={`0 -1 ${width} ${height + 2}`} aria-hidden="true">
      <path class="ticker-line" d={path} />
    </svg>
  );
}

/** What comes in, by number and by pace. */
function Feed({ state }: { state: TickerState }) {
  useNow(1000);
  const rate = messagesPerSecond(state, performance.now());
  return (
    <section class="meter" aria-label="Messages">
      <h2>Messages</h2>
      <Readings
        of={{
          "Messages a second": rate === undefined ? "–" : rate.toFixed(1),
          "Lost without a word": formatCount(state.lost),
        }}
      />
      <p class="note">
        Each message has a number: {plural(state.messages, "message")} came
        {state.number === undefined ? "" : `, the latest is number ${formatCount(state.number)}`}.
      </p>
    </section>
  );
}

/** The symbols in the chart, as the address names them. */
function useChosen(quotes: readonly Quote[] | undefined): string[] {
  const text = usePlace().query.get("stocks");
  return readChosen(text, quotes?.map((quote) => quote.symbol) ?? []);
}

function useSlots(chosen: readonly string[]): ReadonlyMap<string, number> {
  const slots = useRef<ReadonlyMap<string, number>>(new Map());
  const names = chosen.join(",");
  return useMemo(() => {
    slots.current = assignSlots(slots.current, names.split(",").filter(Boolean));
    return slots.current;
  }, [names]);
}
