import { type Metrics, metricOf } from "../charts/metrics";
import { formatEstimateWithUnit, soundEstimate } from "../format/estimate";
import { LACKING_WORDS } from "../format/lacking";
import { placeText } from "../format/place";
import { REGIME_WORDS } from "../format/words";
import type { Axis, ExperimentReport, Place, Ranking, Regime } from "../generated/report";
import { Glyph } from "../series/glyph";
import type { Identity } from "../series/identity";
import { rangeScale, tieGroups } from "./ranking-layout";

interface RankingsProps {
  experiment: ExperimentReport;
  metrics: Metrics;
  identities: ReadonlyMap<string, Identity>;
}

/** Who is best while the server has room to spare, and who when it has none. */
export function Rankings({ experiment, metrics, identities }: RankingsProps) {
  if (experiment.rankings.length === 0) return null;
  const regimes: Regime[] = ["load", "stress"];
  return (
    <section aria-label={`Rankings: ${experiment.title}`}>
      <h3>Rankings</h3>
      {regimes.map((regime) => {
        const rankings = experiment.rankings.filter((one) => one.regime === regime);
        if (rankings.length === 0) return null;
        const words = REGIME_WORDS[regime];
        return (
          <div key={regime} class="regime">
            <h4>
              {words.name} <span class="note">{words.meaning}</span>
            </h4>
            <div class="rankings">
              {rankings.map((ranking) => (
                <RankingTable
                  key={`${ranking.among} ${ranking.metric} ${ranking.x}`}
                  ranking={ranking}
                  axis={experiment.axis}
                  metrics={metrics}
                  identities={identities}
                />
              ))}
            </div>
          </div>
        );
      })}
    </section>
  );
}

interface RankingTableProps {
  ranking: Ranking;
  axis: Axis;
  metrics: Metrics;
  identities: ReadonlyMap<string, Identity>;
}

function RankingTable({ ranking, axis, metrics, identities }: RankingTableProps) {
  const { title, unit } = metricOf(metrics, ranking.metric);
  const places = ranking.places.filter((place) => soundEstimate(place.figure) !== null);
  const scale = rangeScale(places.map((place) => place.figure));
  return (
    <table class="ranking">
      <caption>
        <strong>{title}</strong>{" "}
        <span class="note">
          {ranking.among === "" ? "" : `${ranking.among}, `}at {placeText(axis, ranking.x)}
          {scale.log ? "; log scale" : ""}
        </span>
      </caption>
      <thead class="visually-hidden">
        <tr>
          <th scope="col">Rank</th>
          <th scope="col">Series</th>
          <th scope="col">Range</th>
          <th scope="col">Value{unit !== "" && `, ${unit}`}</th>
        </tr>
      </thead>
      {tieGroups(places).map((group) => (
        <tbody key={group[0]?.rank} class={group.length > 1 ? "tie" : undefined}>
          {group.map((place) => (
            <PlaceRow
              key={place.key}
              place={place}
              tied={group.length > 1}
              unit={unit}
              at={scale.place}
              identity={identities.get(place.key)}
            />
          ))}
        </tbody>
      ))}
      {ranking.unplaced.length > 0 && (
        <tbody class="unplaced">
          {ranking.unplaced.map(({ key, label, why, detail }) => (
            <tr key={key}>
              <td class="rank">{why === "failed" ? "last" : "–"}</td>
              <th scope="row">
                <Glyph identity={identities.get(key)} />
                {label}
              </th>
              <td colSpan={2}>
                {LACKING_WORDS[why]}: {detail}
              </td>
            </tr>
          ))}
        </tbody>
      )}
    </table>
  );
}

interface PlaceRowProps {
  place: Place;
  tied: boolean;
  unit: string;
  at: (value: number) => number;
  identity: Identity | undefined;
}

function PlaceRow({ place, tied, unit, at, identity }: PlaceRowProps) {
  const { figure } = place;
  const text = formatEstimateWithUnit(figure, unit);
  const low = at(figure.low);
  return (
    <tr>
      <td class="rank">
        {place.rank}
        {tied && <span class="tied">{place.tie ?? "tie"}</span>}
      </td>
      <th scope="row">
        <Glyph identity={identity} />
        {place.label}
        {place.published_rank != null && (
          <span class="note published-rank">
            {" "}
            published: {place.published_rank}. · of those, here: {place.rank_among_published}.
          </span>
        )}
      </th>
      <td class="range" aria-hidden="true">
        <span class="track">
          {figure.runs > 1 && (
            <span
              class="arms"
              style={{
                left: `${low}%`,
                width: `${at(figure.high) - low}%`,
                color: identity?.colour,
              }}
            />
          )}
          <span class="dot" style={{ left: `${at(figure.value)}%`, color: identity?.colour }} />
        </span>
      </td>
      <td class="number">
        {text.value} <span class="interval">{text.interval}</span>
      </td>
    </tr>
  );
}
