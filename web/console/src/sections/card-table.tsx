import { LACKING_WORDS, lackingOf } from "../format/lacking";
import type { CardCell, CardOption, CardRow, Scorecard } from "../generated/report";
import { ChoiceMark } from "./choice-mark";
import {
  boundSign,
  conclusionText,
  entriesOf,
  type FactorScale,
  factorText,
  failureOf,
  NO_BREAK,
  optionsIn,
  quantityKey,
  soundCell,
} from "./scorecard-layout";
import { ScrollBox } from "./scroll-box";

/** Bars of all columns have one scale, however wide a column is. */
const BAR_MAX_REM = 4.5;

interface CardTableProps {
  card: Scorecard;
  rows: readonly CardRow[];
  /** Which options are too late to be compared. */
  late: readonly CardOption[];
  choices: readonly string[];
  scale: FactorScale;
}

/** Options by quantities, where the window is wide enough: the same as the bars, at a glance. */
export function CardTable({ card, rows, late, choices, scale }: CardTableProps) {
  return (
    <div class="card-table">
      <ScrollBox label="Scorecard, its table">
        <table class="data glance">
          <thead>
            <tr>
              <th scope="col">Option</th>
              {rows.map((row) => (
                <th key={quantityKey(row)} scope="col">
                  {row.title}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {optionsIn(card, rows).map((option) => {
              const at = card.options.indexOf(option);
              return (
                <tr key={option.key} class={option.key === choices[0] ? "advised" : undefined}>
                  <th scope="row">
                    <ChoiceMark option={option.key} choices={choices} />
                    {option.label}
                  </th>
                  {rows.map((row) => (
                    <GlanceCell
                      key={quantityKey(row)}
                      row={row}
                      option={option}
                      cell={soundCell(row.cells[at])}
                      isLate={late.includes(option)}
                      best={entriesOf(card, row)[0]?.cell}
                      scale={scale}
                    />
                  ))}
                </tr>
              );
            })}
          </tbody>
        </table>
      </ScrollBox>
    </div>
  );
}

interface GlanceProps {
  row: CardRow;
  option: CardOption;
  cell: CardCell | null;
  isLate: boolean;
  /** The best of its row. */
  best: CardCell | undefined;
  scale: FactorScale;
}

function GlanceCell({ row, option, cell, isLate, best, scale }: GlanceProps) {
  // Why it does not work stands below, where there is room.
  if (failureOf(row, option) !== null) return <td class="fails">{row.works ? "no" : "fails"}</td>;
  const lacking = lackingOf(row.lacking, option.key);
  if (lacking !== null) {
    return (
      <td class="absent" title={lacking.detail}>
        {LACKING_WORDS[lacking.why]}
      </td>
    );
  }
  if (isLate && !row.works) return <td class="absent">too late</td>;
  if (cell === null || best === undefined) {
    return (
      <td class="absent">
        <span aria-hidden="true">–</span>
        <span class="visually-hidden">not measured</span>
      </td>
    );
  }
  if (row.works) return <td class="works">yes</td>;
  const { tone, sign, short } = conclusionText(cell);
  const { factor } = cell.against;
  return (
    <td class={`tone-${tone}`}>
      <span class="glance-factor">
        {boundSign(cell, best)}
        {factorText(factor)}
      </span>{" "}
      <span class="glance-words">
        <span aria-hidden="true">
          {sign}
          {NO_BREAK}
        </span>
        {short}
        {cell.is_lower_bound && ", lower bound"}
      </span>
      <span
        class="glance-bar"
        style={{ width: `${(scale.place(factor) / 100) * BAR_MAX_REM}rem` }}
        aria-hidden="true"
      />
    </td>
  );
}
