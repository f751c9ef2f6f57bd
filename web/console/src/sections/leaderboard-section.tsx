import { formatEstimate, NO_INTERVAL, soundEstimate } from "../format/estimate";
import { lackingOf } from "../format/lacking";
import type {
  Lacking,
  Leaderboard,
  LeaderboardColumn,
  LeaderboardRow,
  LeaderboardSubject,
  LeaderboardWarning,
} from "../generated/report";
import type { UpdateView } from "../view/use-view";
import { LEADERBOARD, type Sort, type ViewState } from "../view/view-state";
import { CopyButton } from "./copy-button";
import {
  aboutSubject,
  betterText,
  effectiveSort,
  filterRows,
  marksOf,
  pressedSort,
  rankText,
  SUBJECT_COLUMN,
  sortBoard,
  TRANSPORT_COLUMN,
  transportsOf,
  withoutFigure,
} from "./leaderboard-order";
import { Reasons } from "./reasons";
import { AbsentCell } from "./results-cells";
import { ScrollBox } from "./scroll-box";
import { SectionLink } from "./section-link";

interface LeaderboardProps {
  board: Leaderboard;
  view: ViewState;
  update: UpdateView;
}

/** Every subject over every transport, who was left out, and how each was started. */
export function LeaderboardSection({ board, view, update }: LeaderboardProps) {
  const transports = transportsOf(board);
  const transport = transports.find((one) => one === view.transport) ?? null;
  const sort = effectiveSort(board, view.sorts[LEADERBOARD]);
  const rows = sortBoard(board, filterRows(board, transport), sort);

  const press = (column: string) => {
    const { [LEADERBOARD]: _, ...others } = view.sorts;
    const next = pressedSort(board, sort, column);
    update({ sorts: next === undefined ? others : { ...others, [LEADERBOARD]: next } });
  };

  return (
    <section id="leaderboard" tabIndex={-1} aria-label="Leaderboard">
      <h2>Leaderboard</h2>
      <p class="lead">{board.note}</p>
      <p class="note board-note">
        Estimates with their 95 % intervals. Ranks stand before them, among{" "}
        {transport === null ? "all rows" : `the rows of ${transport}`}: 2= is shared by all that the
        intervals cannot tell from the first of them.{" "}
        <span class="on-screen">Press a heading to sort.</span>
      </p>
      {transports.length > 1 && (
        <div class="controls">
          <label>
            Transport
            <select
              value={transport ?? ""}
              onChange={(event) => update({ transport: event.currentTarget.value || null })}
            >
              <option value="">all</option>
              {transports.map((one) => (
                <option key={one} value={one}>
                  {one}
                </option>
              ))}
            </select>
          </label>
        </div>
      )}
      <ScrollBox label="Leaderboard, its table">
        <table class="data results board">
          <thead>
            <tr>
              <Heading id={SUBJECT_COLUMN} title="Subject" sort={sort} press={press} />
              <Heading id={TRANSPORT_COLUMN} title="Transport" sort={sort} press={press} />
              {board.columns.map((column) => (
                <Heading
                  key={column.id}
                  id={column.id}
                  title={column.title}
                  column={column}
                  sort={sort}
                  press={press}
                />
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.map((row) => (
              <BoardRow
                key={`${row.subject} ${row.transport}`}
                row={row}
                columns={board.columns}
                marks={marksOf(board, row)}
                within={transport !== null}
              />
            ))}
          </tbody>
        </table>
      </ScrollBox>
      <MarkList board={board} view={view} />
      <WithoutFigureList board={board} />
      <LeftOutList board={board} />
      <StartedList subjects={board.subjects} />
    </section>
  );
}

interface HeadingProps {
  id: string;
  title: string;
  column?: LeaderboardColumn;
  sort: Sort;
  press: (column: string) => void;
}

function Heading({ id, title, column, sort, press }: HeadingProps) {
  const active = sort.column === id;
  const direction = !active ? "none" : sort.descending ? "descending" : "ascending";
  const help =
    column === undefined ? undefined : `${betterText(column)}; from ${column.experiment}`;
  return (
    <th scope="col" aria-sort={direction} class={column === undefined ? "col-text" : undefined}>
      <button type="button" title={help} onClick={() => press(id)}>
        {title}
        {column !== undefined && <span class="unit"> {column.unit}</span>}
        <span class="arrow" aria-hidden="true">
          {active ? (sort.descending ? "▼" : "▲") : ""}
        </span>
      </button>
    </th>
  );
}

interface BoardRowProps {
  row: LeaderboardRow;
  columns: readonly LeaderboardColumn[];
  marks: readonly LeaderboardWarning[];
  /** Whether ranks are those among the same transport. */
  within: boolean;
}

function BoardRow({ row, columns, marks, within }: BoardRowProps) {
  return (
    <tr class={row.is_ours ? "ours" : undefined}>
      <th scope="row">
        {row.subject}
        {row.is_ours && <span class="tag">ours</span>}
        {marks.length > 0 && (
          <span class="board-marks">
            {marks.map(({ code, meaning }) => (
              <span key={code} class="tag tag-warning" title={meaning}>
                {code}
              </span>
            ))}
          </span>
        )}
      </th>
      <td>{row.transport}</td>
      {columns.map((column, at) => (
        <StandingCell
          key={column.id}
          standing={row.standings[at] ?? null}
          lacking={lackingOf(row.lacking, column.id)}
          within={within}
        />
      ))}
    </tr>
  );
}

function StandingCell({
  standing,
  lacking,
  within,
}: {
  standing: LeaderboardRow["standings"][number];
  lacking: Lacking | null;
  within: boolean;
}) {
  const figure = soundEstimate(standing?.figure);
  if (standing == null || figure === null) return <AbsentCell lacking={lacking} />;
  const rank = within ? standing.of_transport : standing.overall;
  const text = formatEstimate(figure);
  return (
    <td class={rank?.rank === 1 ? "number best" : "number"}>
      {rank != null && (
        <span class="board-rank">
          <span class="visually-hidden">rank </span>
          {rankText(rank)}
        </span>
      )}{" "}
      {text.value}
      <span class="interval"> {text.interval === NO_INTERVAL ? "1 run" : text.interval}</span>
    </td>
  );
}

function MarkList({ board, view }: { board: Leaderboard; view: ViewState }) {
  if (board.warnings.length === 0) return null;
  return (
    <section aria-label="Marks">
      <h3>Marks</h3>
      <p class="note board-note">
        A row is marked with a warning that at least one run behind its figures raised; ranks take
        no account of it, but that a lower bound is behind nobody. The runs are listed under{" "}
        <SectionLink view={view} section="warnings">
          Warnings
        </SectionLink>
        .
      </p>
      <dl class="reasons">
        {board.warnings.map(({ code, meaning }) => (
          <div key={code}>
            <dt>
              <span class="tag tag-warning">{code}</span>
            </dt>
            <dd>{meaning}</dd>
          </div>
        ))}
      </dl>
    </section>
  );
}

function WithoutFigureList({ board }: { board: Leaderboard }) {
  const reasons = withoutFigure(board);
  if (reasons.length === 0) return null;
  return (
    <section aria-label="Without a figure">
      <h3>Without a figure</h3>
      <p class="note board-note">
        What was not reached ranks behind every figure of its column. Where all runs failed, the row
        comes last. Otherwise nothing is known.
      </p>
      <Reasons of={reasons} />
    </section>
  );
}

function LeftOutList({ board }: { board: Leaderboard }) {
  if (board.left_out.length === 0) return null;
  return (
    <section aria-label="Left out">
      <h3>Left out</h3>
      <Reasons of={board.left_out} />
    </section>
  );
}

function StartedList({ subjects }: { subjects: readonly LeaderboardSubject[] }) {
  return (
    <section aria-label="How each was started">
      <h3>How each was started</h3>
      <div class="started">
        {subjects.map((subject) => (
          <Started key={subject.name} subject={subject} />
        ))}
      </div>
    </section>
  );
}

function Started({ subject }: { subject: LeaderboardSubject }) {
  const { name, commands } = subject;
  const told = (
    <>
      <strong>{name}</strong> <span class="note">{aboutSubject(subject)}</span>
    </>
  );
  return (
    <details>
      <summary>{told}</summary>
      {commands.length === 0 && <p class="note">Its command line is not known.</p>}
      {commands.map((command) => (
        <div key={command} class="code">
          <pre>{command}</pre>
          <CopyButton text={command} what={`the command of ${name}`} />
        </div>
      ))}
    </details>
  );
}
