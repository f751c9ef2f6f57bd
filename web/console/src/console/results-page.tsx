import { useMemo, useState } from "preact/hooks";
import { formatCount, plural } from "../format/number";
import { formatInstant } from "../format/words";
import type { ResultSummary } from "../generated/console";
import type { ApiError } from "../live/http-api";
import { ProblemNotice } from "../live/problem-notice";
import { useResource } from "../live/use-resource";
import {
  comparisonOf,
  filterResults,
  ORDERS,
  occurring,
  readChosen,
  readFilter,
  STATE_NAMES,
  toggleChosen,
} from "./results-list";
import { choose, hrefOf, useLateChoices, usePlace } from "./router";

/** Every result of the store, to be opened or compared. */
export function ResultsPage() {
  return <ResultList key={usePlace().visit} />;
}

function ResultList() {
  const { data, problem, reload } = useResource<ResultSummary[]>("/api/results");
  const { query } = usePlace();
  const [text, setText] = useState(() => query.get("text") ?? "");
  const typed = useMemo(() => ({ text: text || null }), [text]);
  useLateChoices(typed);
  const filter = { ...readFilter(query), text };
  const results = data ?? [];
  const shown = filterResults(results, filter);
  const chosen = readChosen(query, results);

  return (
    <>
      <search class="controls filters">
        <label class="filter-text">
          Find
          <input
            type="search"
            value={text}
            placeholder="name, subject, transport"
            onInput={(event) => setText(event.currentTarget.value)}
          />
        </label>
        <FilterSelect name="state" value={filter.state} options={Object.keys(STATE_NAMES)} />
        <FilterSelect
          name="transport"
          value={filter.transport}
          options={occurring(results, (one) => one.transports)}
        />
        <FilterSelect
          name="subject"
          value={filter.subject}
          options={occurring(results, (one) => one.subjects)}
        />
        <label>
          Order
          <select
            value={filter.order}
            onChange={(event) => choose({ order: event.currentTarget.value })}
          >
            {Object.entries(ORDERS).map(([name, title]) => (
              <option key={name} value={name}>
                {title}
              </option>
            ))}
          </select>
        </label>
      </search>
      <div class="list-bar">
        <p role="status">{countText(data, problem, shown.length)}</p>
        <div role="status">
          <CompareLink chosen={chosen} />
        </div>
      </div>
      <ProblemNotice title="The results cannot be shown" problem={problem} retry={reload} />
      {data === null && problem === null && <div class="placeholder results-placeholder" />}
      {data !== null && data.length === 0 && <NoResults />}
      <ul class="result-list">
        {shown.map((one) => (
          <ResultItem key={one.id} result={one} chosen={chosen} />
        ))}
      </ul>
    </>
  );
}

function countText(
  data: readonly ResultSummary[] | null,
  problem: ApiError | null,
  shown: number,
): string {
  if (data === null) return problem === null ? "Reading the store…" : "";
  if (shown === data.length) return plural(shown, "result");
  return `${formatCount(shown)} of ${plural(data.length, "result")}`;
}

interface FilterSelectProps {
  name: "state" | "transport" | "subject";
  value: string | null;
  options: readonly string[];
}

function FilterSelect({ name, value, options }: FilterSelectProps) {
  // One from an old address stays to be seen, and to be undone.
  const all = value === null || options.includes(value) ? options : [...options, value];
  return (
    <label class="filter">
      {name.charAt(0).toUpperCase() + name.slice(1)}
      <select
        value={value ?? ""}
        onChange={(event) => choose({ [name]: event.currentTarget.value || null })}
      >
        <option value="">all</option>
        {all.map((one) => (
          <option key={one} value={one}>
            {one}
          </option>
        ))}
      </select>
    </label>
  );
}

function CompareLink({ chosen }: { chosen: readonly ResultSummary[] }) {
  const pair = comparisonOf(chosen);
  if (pair === null) {
    const wanted = chosen.length === 1 ? "Choose one more to compare." : "Choose two to compare.";
    return <p class="note">{wanted}</p>;
  }
  const { baseline, candidate } = pair;
  const ids = { baseline: String(baseline.id), candidate: String(candidate.id) };
  return (
    <a class="button primary" href={hrefOf("/compare", ids)}>
      {/* One child: between those of a flex box spaces vanish. */}
      <span>
        Compare{" "}
        <span class="compare-names">
          {baseline.name} with {candidate.name}
        </span>
      </span>
    </a>
  );
}

function ResultItem({
  result,
  chosen,
}: {
  result: ResultSummary;
  chosen: readonly ResultSummary[];
}) {
  const { id, name, title, state, started_ms, subjects, transports } = result;
  const ids = chosen.map((one) => one.id);
  const started = new Date(started_ms).toISOString();
  return (
    <li>
      <label class="result-choice">
        <input
          type="checkbox"
          checked={ids.includes(id)}
          onChange={() => choose({ chosen: toggleChosen(ids, id).join(",") || null })}
        />
        <span class="visually-hidden">Choose {title} for a comparison</span>
      </label>
      <div class="result-title">
        <a href={`/reports/${id}`}>{title}</a>
        <p class="facts">
          <code>{name}</code>
          <time dateTime={started}>{formatInstant(started)}</time>
        </p>
      </div>
      <div class="result-state">
        <StateBadge state={state} />
        <p class="note">{runsText(result)}</p>
        {state === "running" && (
          <a class="note" href="/live">
            See it live
          </a>
        )}
      </div>
      <dl class="result-what">
        <dt>Subjects</dt>
        <dd>{shortList(subjects)}</dd>
        <dt>Transports</dt>
        <dd>{shortList(transports)}</dd>
      </dl>
    </li>
  );
}

const STATE_LOOKS = {
  complete: "good",
  interrupted: "open",
  running: "running",
  imported: "plain",
};

export function StateBadge({ state }: { state: ResultSummary["state"] }) {
  return <span class={`badge badge-${STATE_LOOKS[state]}`}>{STATE_NAMES[state]}</span>;
}

/** `512 of 940 runs, 14 void, 2 failed`. */
export function runsText(result: ResultSummary): string {
  const { runs_done, runs_planned, runs_void, runs_failed } = result;
  const done =
    runs_done === runs_planned
      ? plural(runs_done, "run")
      : `${formatCount(runs_done)} of ${plural(runs_planned, "run")}`;
  const bad = [
    runs_void > 0 ? `, ${formatCount(runs_void)} void` : "",
    runs_failed > 0 ? `, ${formatCount(runs_failed)} failed` : "",
  ];
  return done + bad.join("");
}

/** Names that are listed before the rest is counted. */
const MAX_LISTED = 6;

function shortList(names: readonly string[]): string {
  if (names.length === 0) return "–";
  const rest = names.length - MAX_LISTED;
  if (rest <= 1) return names.join(", ");
  return `${names.slice(0, MAX_LISTED).join(", ")} and ${formatCount(rest)} more`;
}

function NoResults() {
  return (
    <div class="empty-state">
      <h2>The store is empty</h2>
      <p>
        <a href="/new">Start an experiment</a>, <a href="/measure">measure this browser</a>, or
        compare every transport on this machine from a terminal:
      </p>
      <pre>pushlab run transports</pre>
    </div>
  );
}
