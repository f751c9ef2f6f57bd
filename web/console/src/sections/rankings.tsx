import { formatFigureWithUnit } from "../format/figure";
import { plural } from "../format/number";
import { REGIME_WORDS } from "../format/words";
import type { ExperimentReport, Place, Ranking, Regime } from "../generated/report";
import { Glyph } from "../series/glyph";
import type { Identity } from "../series/identity";
import { rangeScale, tieGroups } from "./ranking-layout";

interface RankingsProps {
  experiment: ExperimentReport;
  identities: ReadonlyMap<string, Identity>;
}

/** Who is best while the server has room to spare, and who when it has none. */
export function Rankings({ experiment, identities }: RankingsProps) {
  const titleId = `${experiment.name}-rankings`;
  const regimes: Regime[] = ["load", "stress"];
  return (
    <section aria-labelledby={`${titleId} ${experiment.name}-title`}>
      <h3 id={titleId}>Rankings</h3>
      {experiment.rankings.length === 0 && (
        <p class="empty">Too few series could be compared for a ranking.</p>
      )}
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
                  key={`${ranking.metric} ${ranking.clients}`}
                  ranking={ranking}
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
  identities: ReadonlyMap<string, Identity>;
}

function RankingTable({ ranking, identities }: RankingTableProps) {
  const scale = rangeScale(ranking.places.map((place) => place.figure));
  return (
    <table class="ranking">
      <caption>
        <strong>{sentenceCase(ranking.metric)}</strong>{" "}
        <span class="note">
          at {plural(ranking.clients, "client")}
          {scale.log ? "; log scale" : ""}
        </span>
      </caption>
      <thead class="unseen">
        <tr>
          <th scope="col">Rank</th>
          <th scope="col">Series</th>
          <th scope="col">Range</th>
          <th scope="col">Value, {ranking.unit}</th>
        </tr>
      </thead>
      {tieGroups(ranking.places).map((group) => (
        <tbody key={group[0]?.rank} class={group.length > 1 ? "tie" : undefined}>
          {group.map((place) => (
            <PlaceRow
              key={place.key}
              place={place}
              tied={group.length > 1}
              unit={ranking.unit}
              at={scale.place}
              identity={identities.get(place.key)}
            />
          ))}
        </tbody>
      ))}
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
  const text = formatFigureWithUnit(figure, unit);
  const low = at(figure.low);
  return (
    <tr>
      <td class="rank">
        {place.rank}
        {tied && <span class="tied">tie</span>}
      </td>
      <th scope="row">
        <Glyph identity={identity} />
        {place.label}
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

function sentenceCase(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
