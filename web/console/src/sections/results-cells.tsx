import { estimateOf } from "../charts/metrics";
import { formatEstimate, NO_INTERVAL } from "../format/estimate";
import { LACKING_WORDS, lackingOf } from "../format/lacking";
import { formatCount, formatExact, plural } from "../format/number";
import { BANDS } from "../format/words";
import type { Estimate, Lacking, Point } from "../generated/report";
import { Glyph } from "../series/glyph";
import type { Identity } from "../series/identity";
import type { ResultColumn, Row } from "./results-columns";

/** Longer labels are broken into lines, so that they do not push the figures out of sight. */
const NOWRAP_MAX = 40;

interface ResultCellProps {
  column: ResultColumn;
  row: Row;
  identity: Identity | undefined;
}

export function ResultCell({ column, row: { series, point }, identity }: ResultCellProps) {
  const published = series.origin === "published";
  switch (column.kind) {
    case "series":
      return (
        <th scope="row" class={series.label.length <= NOWRAP_MAX ? "nowrap" : undefined}>
          <Glyph identity={identity} line={false} />
          {series.label}
        </th>
      );
    case "place":
      return <td class="number">{formatExact(point.x)}</td>;
    case "clients":
      return <td class="number">{formatCount(point.clients)}</td>;
    case "runs":
      return <RunsCell runs={point.runs} published={published} />;
    case "figure":
      return (
        <EstimateCell
          figure={estimateOf(point, column.id)}
          lacking={lackingOf(point.lacking, column.id)}
        />
      );
    case "judgement":
      return <JudgementCell point={point} />;
    case "error": {
      const count = column.count(point);
      return published || count === null ? (
        <td class="number absent">–</td>
      ) : (
        <ErrorCell count={count} runs={point.runs} />
      );
    }
    case "caveats":
      return <CaveatsCell point={point} />;
  }
}

/** Why there is no figure, as far as it is known; the numbers stand below the table. */
export function AbsentCell({ lacking }: { lacking: Lacking | null }) {
  return (
    <td class="number absent" title={lacking?.detail}>
      {lacking === null ? "–" : LACKING_WORDS[lacking.why]}
    </td>
  );
}

interface EstimateCellProps {
  figure: Estimate | null;
  lacking?: Lacking | null;
}

/** A value with its interval below it; that there is none is said once for the row. */
export function EstimateCell({ figure, lacking = null }: EstimateCellProps) {
  if (figure === null) return <AbsentCell lacking={lacking} />;
  const text = formatEstimate(figure);
  const interval = text.interval === NO_INTERVAL ? "" : text.interval;
  return (
    <td class="number">
      {text.value}
      {interval !== "" && <span class="interval"> {interval}</span>}
    </td>
  );
}

function RunsCell({ runs, published }: { runs: number; published: boolean }) {
  if (published) {
    return (
      <td class="number runs-cell">
        {runs > 1 ? formatCount(runs) : ""}
        <span class="interval">published</span>
      </td>
    );
  }
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
  const { failures, voids, withheld = [], warnings } = point;
  return (
    <td class="caveats">
      {failures.length > 0 && (
        <span class="tag tag-void">{formatCount(failures.length)} failed</span>
      )}
      {voids.length > 0 && <span class="tag tag-void">{plural(voids.length, "void", "void")}</span>}
      {withheld.length > 0 && (
        <span class="tag tag-withheld">{formatCount(withheld.length)} without latency</span>
      )}
      {warnings.map((code) => (
        <span key={code} class="tag tag-warning">
          {code}
        </span>
      ))}
    </td>
  );
}
