import { StackChart } from "../charts/stack-chart";
import { soundEstimate } from "../format/estimate";
import type { DataCell, DataTable, ExperimentReport } from "../generated/report";
import { EstimateCell } from "./results-cells";
import { ScrollBox } from "./scroll-box";

/** Tables that the report brings along: published beside measured, performance factors and the like. */
export function DataTables({ experiment }: { experiment: ExperimentReport }) {
  return (
    <>
      {experiment.tables
        .filter((table) => table.rows.length > 0)
        .map((table) => (
          <section key={table.title} aria-label={`${table.title}: ${experiment.title}`}>
            <h3>{table.title}</h3>
            {table.note !== "" && <p class="note lead">{table.note}</p>}
            <StackChart table={table} />
            <ScrollBox label={`Figures of ${table.title}: ${experiment.title}`}>
              <TableOf table={table} />
            </ScrollBox>
          </section>
        ))}
    </>
  );
}

/** Tables of more columns are set smaller on paper, where nothing scrolls. */
const COLUMNS_WIDE = 9;

function TableOf({ table: { columns, rows } }: { table: DataTable }) {
  const numeric = columns.map((_, at) => rows.some((row) => isEstimate(row[at] ?? null)));
  return (
    <table class={columns.length > COLUMNS_WIDE ? "data data-wide" : "data"}>
      <thead>
        <tr>
          {columns.map((column, at) => (
            <th key={at} scope="col" class={numeric[at] ? "number" : undefined}>
              {column.title}
              {column.unit !== "" && <span class="unit"> {column.unit}</span>}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map((row, index) => (
          <tr key={index}>
            {columns.map((_, at) => (
              <Cell
                key={at}
                cell={row[at] ?? null}
                first={at === 0}
                numeric={numeric[at] ?? false}
              />
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** Shorter texts stay on one line; longer ones are sentences and need some width. */
const LINE_MAX = 24;

function Cell({ cell, first, numeric }: { cell: DataCell; first: boolean; numeric: boolean }) {
  if (isEstimate(cell)) return <EstimateCell figure={soundEstimate(cell)} />;
  const text = typeof cell === "string" ? cell : "–";
  const width = text.length <= LINE_MAX ? "nowrap" : "prose";
  if (first) {
    return (
      <th scope="row" class={width}>
        {text}
      </th>
    );
  }
  const absent = typeof cell === "string" ? "" : " absent";
  return <td class={(numeric ? "number" : `text ${width}`) + absent}>{text}</td>;
}

function isEstimate(cell: DataCell): cell is Exclude<DataCell, string | null> {
  return typeof cell === "object" && cell !== null;
}
