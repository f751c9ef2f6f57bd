import { formatEstimateWithUnit, NO_INTERVAL } from "../format/estimate";
import { formatNumber, formatTick, joinUnit } from "../format/number";
import type { CardCell, CardOption, CardRow, Scorecard } from "../generated/report";
import { Failures, NotMeasured, WithoutFigure } from "./card-works";
import { ChoiceMark } from "./choice-mark";
import { FactorBar } from "./factor-bar";
import {
  boundSign,
  conclusionText,
  type Entry,
  entriesOf,
  type FactorScale,
  factorText,
  failuresOf,
  foldEntries,
  NO_BREAK,
} from "./scorecard-layout";

interface QuantityProps {
  card: Scorecard;
  row: CardRow;
  id: string;
  /** Which options are too late to be compared. */
  late: readonly CardOption[];
  /** Keys of what is advised and of the runner-up. */
  choices: readonly string[];
  scale: FactorScale;
}

/** One quantity: the best of it, and how far the others are behind. */
export function CardQuantity({ card, row, id, late, choices, scale }: QuantityProps) {
  const entries = entriesOf(card, row);
  const best = entries[0];
  const failures = failuresOf(card, row);
  const margin = joinUnit(formatTick(row.margin_percent), "%");
  const [shown, folded] = foldEntries(entries, choices);
  const shared = { best: best?.cell, row, choices, scale };
  return (
    <section class="quantity" aria-labelledby={id}>
      <h3 id={id}>{row.title}</h3>
      <p class="note">
        {row.note !== "" && `${row.note}; `}
        {row.better} is better; within {margin} is equivalent
      </p>
      {best !== undefined && <BestValue entry={best} unit={row.unit} />}
      {shown.length > 0 && <Factors entries={shown} {...shared} />}
      {best !== undefined && <FactorAxis scale={scale} />}
      {folded.length > 0 && (
        <details class="more-factors">
          <summary>
            {folded.length} more, from {factorText(folded[0]?.cell.against.factor ?? 1)}
          </summary>
          <Factors entries={folded} {...shared} />
        </details>
      )}
      <Failures failures={failures} word="failed" />
      <WithoutFigure card={card} row={row} />
      {entries.some(({ cell }) => cell.is_lower_bound) && (
        <p class="note">
          Lower bound: the load generator reached its limit before the server, which may do better.
        </p>
      )}
      <NotMeasured card={card} row={row} late={late} />
    </section>
  );
}

function BestValue({ entry: { option, cell }, unit }: { entry: Entry; unit: string }) {
  const { value, interval } = formatEstimateWithUnit(cell.estimate, unit);
  return (
    <p class="best-value">
      Best measured: <strong>{value}</strong>{" "}
      {interval === NO_INTERVAL ? `(${interval})` : interval}, {option.label}
    </p>
  );
}

interface FactorsProps {
  entries: readonly Entry[];
  best: CardCell | undefined;
  row: CardRow;
  choices: readonly string[];
  scale: FactorScale;
}

function Factors({ entries, best, row, choices, scale }: FactorsProps) {
  return (
    <ol class="factors">
      {entries.map(({ option, cell }) => (
        <Factor
          key={option.key}
          entry={{ option, cell }}
          bound={boundSign(cell, best ?? cell)}
          unit={row.unit}
          margin={1 + row.margin_percent / 100}
          choices={choices}
          scale={scale}
        />
      ))}
    </ol>
  );
}

interface FactorProps {
  entry: Entry;
  /** Stands before its factor. */
  bound: string;
  unit: string;
  /** The factor up to which an option is as good as the best. */
  margin: number;
  choices: readonly string[];
  scale: FactorScale;
}

function Factor({ entry: { option, cell }, bound, unit, margin, choices, scale }: FactorProps) {
  const { against, is_lower_bound } = cell;
  const { tone, sign, words } = conclusionText(cell);
  return (
    <li class={`factor tone-${tone}`}>
      <span class="factor-head">
        <span class="factor-label">
          <ChoiceMark option={option.key} choices={choices} />
          {option.label}
          {is_lower_bound && (
            <>
              {" "}
              <span class="tag">lower bound</span>
            </>
          )}
        </span>{" "}
        <span class="factor-number">
          {bound}
          {factorText(against.factor)}
          <span class="visually-hidden"> the best,</span>
        </span>{" "}
        <span class="factor-words">
          <span aria-hidden="true">
            {sign}
            {NO_BREAK}
          </span>
          {words}
        </span>
      </span>
      <span class="factor-track">
        <FactorBar cell={cell} tone={tone} margin={margin} scale={scale} />
        <span class="factor-range">
          {tone === "few" ? (
            "no interval"
          ) : (
            <>
              <span class="visually-hidden">; interval </span>
              {formatNumber(against.low)} – {factorText(against.high)}
            </>
          )}
        </span>
        <span class="factor-value">
          <span class="visually-hidden">; measured </span>
          {formatEstimateWithUnit(cell.estimate, unit).value}
        </span>
      </span>
    </li>
  );
}

function FactorAxis({ scale }: { scale: FactorScale }) {
  return (
    <div class="factor-axis" aria-hidden="true">
      {scale.ticks.map((tick) => (
        <span key={tick} style={{ left: `${scale.place(tick)}%` }}>
          {tick}×
        </span>
      ))}
    </div>
  );
}
