import { choose, usePlace } from "../console/router";
import { formatCount } from "../format/number";
import { TRANSPORT_NAMES } from "../live/transport-select";
import { Definitions } from "./definitions";
import { LatencyStrips } from "./latency-strips";
import { MeasureTable } from "./measure-table";
import { choicesOf, MESSAGE_COUNTS, type MeasureOptions, readOptions, TRANSPORTS } from "./options";
import { SavePanel } from "./save-panel";
import { type MeasureState, useMeasurement } from "./use-measurement";
import { verdict } from "./verdict";

/** Measures the way between this browser and the server, over every transport in turn. */
export function MeasurePage() {
  const chosen = readOptions(usePlace().query);
  const { state, start, stop } = useMeasurement();
  const { measurements, current } = state;
  // What was measured stays, whatever is chosen for the next time.
  const { transports } = state.options ?? chosen;
  const isDone = current === undefined && measurements.length > 0;
  return (
    <>
      <p class="lead">
        Opens each transport to this server in turn, sends messages to itself, and tells which ones
        get through your network and how long messages take.
      </p>
      <OptionsForm chosen={chosen} state={state} start={start} stop={stop} />
      <section aria-label="What was found">
        <Verdict state={state} />
        <MeasureTable transports={transports} measurements={measurements} current={current} />
        <LatencyStrips transports={transports} measurements={measurements} />
        <Definitions />
      </section>
      {isDone && (
        <SavePanel key={measurements} measurements={measurements} wasHidden={state.wasHidden} />
      )}
    </>
  );
}

interface OptionsFormProps {
  chosen: MeasureOptions;
  state: MeasureState;
  start: (options: MeasureOptions) => void;
  stop: () => void;
}

function OptionsForm({ chosen, state, start, stop }: OptionsFormProps) {
  const isRunning = state.current !== undefined;
  const toggle = (name: string, isWanted: boolean) => {
    const transports = TRANSPORTS.filter((one) =>
      one === name ? isWanted : chosen.transports.includes(one),
    );
    if (transports.length > 0) choose(choicesOf({ ...chosen, transports }));
  };
  return (
    <form
      class="measure-form"
      onSubmit={(event) => {
        event.preventDefault();
        if (isRunning) stop();
        else start(chosen);
      }}
    >
      <fieldset disabled={isRunning}>
        <legend>Transports</legend>
        {TRANSPORTS.map((name) => {
          const isChosen = chosen.transports.includes(name);
          return (
            <label key={name}>
              <input
                type="checkbox"
                checked={isChosen}
                // One has to be left.
                disabled={isChosen && chosen.transports.length === 1}
                onChange={({ currentTarget }) => toggle(name, currentTarget.checked)}
              />
              {TRANSPORT_NAMES[name]}
            </label>
          );
        })}
      </fieldset>
      <label class="measure-count">
        Messages over each
        <select
          value={chosen.messages}
          disabled={isRunning}
          onChange={({ currentTarget }) =>
            choose(choicesOf({ ...chosen, messages: Number(currentTarget.value) }))
          }
        >
          {MESSAGE_COUNTS.map((count) => (
            <option key={count} value={count}>
              {formatCount(count)}
            </option>
          ))}
        </select>
      </label>
      <div class="measure-progress">
        <button type="submit" class="primary">
          {isRunning ? "Stop" : state.options === undefined ? "Measure" : "Measure again"}
        </button>
        <progress aria-label="Progress" value={state.done} max={state.all} />
        <span role="status">{progressText(state)}</span>
      </div>
    </form>
  );
}

function progressText({ current, options, isStopped }: MeasureState): string {
  if (options === undefined) return "";
  if (current === undefined) return isStopped ? "Stopped" : "Done";
  const at = options.transports.indexOf(current) + 1;
  return `${TRANSPORT_NAMES[current]}, ${at} of ${options.transports.length}`;
}

function Verdict({ state }: { state: MeasureState }) {
  const { current, measurements, wasHidden } = state;
  const isDone = current === undefined && measurements.length > 0;
  return (
    <div class="verdict measure-verdict" role="status">
      {isDone ? (
        verdict(measurements).map((sentence) => <p key={sentence}>{sentence}</p>)
      ) : (
        <p class="empty">{current === undefined ? "Nothing is measured yet." : "Measuring…"}</p>
      )}
      {isDone && wasHidden && (
        <p class="note">
          This page was in the background during the measurement, where browsers slow timers down.
          Measure again with the page in front.
        </p>
      )}
    </div>
  );
}
