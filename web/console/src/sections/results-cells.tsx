import { formatFigure, NO_INTERVAL } from "../format/figure";
import { formatCount, plural } from "../format/number";
import { BANDS } from "../format/words";
import type { Point } from "../generated/report";
import { Glyph } from "../series/glyph";
import type { Identity } from "../series/identity";
import type { Column, Row } from "./results-columns";

export function SeriesCell({ row, identity }: { row: Row; identity: Identity | undefined }) {
  return (
    <th scope="row">
      <Glyph identity={identity} line={false} />
      {row.series.label}
    </th>
  );
}

export function TableCell({ column, row: { point } }: { column: Column; row: Row }) {
  switch (column.kind) {
    case "clients":
      return <td class="number">{formatCount(point.clients)}</td>;
    case "runs":
      return <RunsCell runs={point.runs} />;
    case "figure": {
      const figure = column.figure(point);
      if (figure === null) return <td class="number absent">–</td>;
      const text = formatFigure(figure);
      // The runs column says once for the row that there is no interval.
      const interval = text.interval === NO_INTERVAL ? "" : text.interval;
      return (
        <td class="number">
          {text.value}
          <span class="interval">{interval}</span>
        </td>
      );
    }
    case "judgement":
      return <JudgementCell point={point} />;
    case "error":
      return <ErrorCell count={column.count(point)} runs={point.runs} />;
    case "caveats":
      return <CaveatsCell point={point} />;
  }
}

function RunsCell({ runs }: { runs: number }) {
  return (
    <td class="number runs-cell">
      {formatCount(runs)}
      {runs === 1 && <span class="interval">no interval</span>}
      {runs === 0 && <span class="interval">none valid</span>}
    </td>
  );
}

function JudgementCell({ point: { regime, band } }: { point: Point }) {
  if (regime == null) return <td class="absent">–</td>;
  return (
    <td class="col-judgement-cell">
      <span class={regime}>{regime}</span>
      <span class="interval">{BANDS.find((one) => one.band === band)?.name}</span>
    </td>
  );
}

function ErrorCell({ count, runs }: { count: number; runs: number }) {
  if (count === 0) return <td class="number quiet">{runs === 0 ? "–" : "0"}</td>;
  return (
    <td class="number">
      <strong class="loud">{formatCount(count)}</strong>
    </td>
  );
}

function CaveatsCell({ point }: { point: Point }) {
  const { failures, voids, doubts } = point;
  return (
    <td class="caveats">
      {failures.length > 0 && (
        <span class="tag tag-void">{formatCount(failures.length)} failed</span>
      )}
      {voids.length > 0 && <span class="tag tag-void">{plural(voids.length, "void", "void")}</span>}
      {doubts.map((code) => (
        <span key={code} class="tag tag-warning">
          {code}
        </span>
      ))}
    </td>
  );
}
