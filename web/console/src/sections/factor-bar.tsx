import type { CardCell } from "../generated/report";
import type { FactorScale, Tone } from "./scorecard-layout";

interface FactorBarProps {
  cell: CardCell;
  tone: Tone;
  /** The factor up to which an option is as good as the best. */
  margin: number;
  scale: FactorScale;
}

/** A factor as a bar from 1 with its interval; what it shows stands beside it in words. */
export function FactorBar({ cell: { against }, tone, margin, scale }: FactorBarProps) {
  const { factor, low, high } = against;
  const from = scale.place(low);
  const width = scale.place(high) - from;
  return (
    <span class={`factor-bar tone-${tone}`} aria-hidden="true">
      <span class="factor-margin" style={{ width: `${scale.place(margin)}%` }} />
      {scale.ticks.map((tick) => (
        <span key={tick} class="factor-tick" style={{ left: `${scale.place(tick)}%` }} />
      ))}
      <span
        class={factor > scale.end ? "factor-fill beyond" : "factor-fill"}
        style={{ width: `${scale.place(factor)}%` }}
      />
      {tone !== "few" && low < scale.end && (
        <span
          class={high > scale.end ? "factor-interval beyond" : "factor-interval"}
          style={{ left: `${from}%`, width: `${width}%` }}
        />
      )}
    </span>
  );
}
