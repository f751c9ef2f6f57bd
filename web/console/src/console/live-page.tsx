import { useEffect, useState } from "preact/hooks";
import { formatCount, joinUnit, plural } from "../format/number";
import type { About, LiveRun, LiveStart, LiveState } from "../generated/console";
import { LiveChart } from "../live/live-chart";
import { ProblemNotice } from "../live/problem-notice";
import { ConnectionState } from "../live/transport-select";
import { useConnection } from "../live/use-connection";
import { useResource } from "../live/use-resource";
import { InterruptButton } from "./interrupt-button";
import {
  addLive,
  beginLive,
  isLiveState,
  type LiveSample,
  type LiveView,
  MAX_SAMPLES,
} from "./live-view";
import { PhaseSteps } from "./phase-steps";

/** The campaign that is being carried out, several times a second. */
export function LivePage() {
  const about = useResource<About>("/api/about");
  const start = useResource<LiveStart>("/api/live");
  const [view, setView] = useState<LiveView | null>(null);
  const [gaps, setGaps] = useState(0);

  useEffect(() => {
    const { data } = start;
    if (data !== null) setView((before) => beginLive(before, data.live));
  }, [start.data]);

  const channel = about.data?.live_channel;
  const live = useConnection(
    channel === undefined || start.data === null
      ? null
      : { channels: [channel], transport: "automatic", after: start.data.cursor },
    {
      message: ({ data }) => {
        if (isLiveState(data)) setView((before) => addLive(before, data));
      },
      gap: () => {
        setGaps((count) => count + 1);
        start.reload();
      },
    },
  );

  const problem = about.problem ?? start.problem;
  const retry = () => {
    about.reload();
    start.reload();
  };
  return (
    <>
      <div class="live-bar">
        <ConnectionState live={live} />
      </div>
      <ProblemNotice title="The live figures cannot be shown" problem={problem} retry={retry} />
      {view === null ? (
        problem === null && <div class="placeholder live-placeholder" />
      ) : view.live.state === "running" ? (
        <Running view={view} gaps={gaps} canRun={about.data?.can_run === true} />
      ) : (
        <Idle live={view.live} canRun={about.data?.can_run === true} />
      )}
    </>
  );
}

interface RunningProps {
  view: LiveView;
  /** How often messages were missed. */
  gaps: number;
  canRun: boolean;
}

function Running({ view, gaps, canRun }: RunningProps) {
  const { live, samples } = view;
  const run = live.run ?? null;
  return (
    <>
      <section class="campaign" aria-label="Campaign">
        <div class="campaign-title">
          <h2>{live.name}</h2>
          {canRun && <InterruptButton />}
        </div>
        <Progress live={live} />
      </section>
      <section aria-label="Run">
        <h2 class="run-title">{run === null ? "Between two runs" : run.label}</h2>
        <PhaseSteps run={run} />
        <Counts run={run} />
      </section>
      <section aria-label="The last minute">
        <h2>The last minute</h2>
        <p class="note live-gaps" role="status">
          {gaps > 0 && `${plural(gaps, "gap")}: figures were missed, and fetched again.`}
        </p>
        <Charts samples={samples} />
      </section>
    </>
  );
}

function Progress({ live }: { live: LiveState }) {
  const { runs_done, runs_planned, runs_void, runs_failed } = live;
  const text = `${formatCount(runs_done)} of ${plural(runs_planned, "run")}`;
  return (
    <div class="progress">
      <progress value={runs_done} max={Math.max(1, runs_planned)} aria-label="Runs done">
        {text}
      </progress>
      <p class="facts">
        <span>{text}</span>
        <span>{formatCount(runs_void)} void</span>
        <span>{formatCount(runs_failed)} failed</span>
      </p>
    </div>
  );
}

function Counts({ run }: { run: LiveRun | null }) {
  const count = (value: number | undefined) => (value === undefined ? "–" : formatCount(value));
  return (
    <dl class="readings">
      <div>
        <dt>Time in the run</dt>
        <dd>
          {run === null ? "–" : joinUnit(formatCount(Math.floor(run.elapsed_ms / 1000)), "s")}
        </dd>
      </div>
      <div>
        <dt>Clients subscribed</dt>
        <dd>{count(run?.clients)}</dd>
      </div>
      <div>
        <dt>Published</dt>
        <dd>{count(run?.published)}</dd>
      </div>
      <div>
        <dt>Delivered</dt>
        <dd>{count(run?.delivered)}</dd>
      </div>
    </dl>
  );
}

const BYTES_PER_MIB = 1_048_576;

function Charts({ samples }: { samples: readonly LiveSample[] }) {
  const of = (read: (sample: LiveSample) => number | null) => samples.map(read);
  const memory = of((one) => one.subjectRssBytes).map((bytes) => bytes && bytes / BYTES_PER_MIB);
  return (
    <div class="live-charts">
      <LiveChart
        length={MAX_SAMPLES}
        title="Deliveries"
        unit="/s"
        lines={[{ name: "deliveries", values: of((one) => one.deliveriesPerS), look: 1 }]}
      />
      <LiveChart
        length={MAX_SAMPLES}
        title="Latency"
        unit="ms"
        lines={[
          { name: "median", values: of((one) => one.latencyP50Ms), look: 1 },
          { name: "99th percentile", values: of((one) => one.latencyP99Ms), look: 2 },
        ]}
      />
      <LiveChart
        length={MAX_SAMPLES}
        title="CPU, of one core"
        unit="%"
        lines={[
          { name: "subject", values: of((one) => one.subjectCpu), look: 1 },
          { name: "generator", values: of((one) => one.generatorCpu), look: 2 },
        ]}
      />
      <LiveChart
        length={MAX_SAMPLES}
        title="Memory of the subject"
        unit="MiB"
        lines={[{ name: "memory", values: memory, look: 1 }]}
      />
    </div>
  );
}

function Idle({ live, canRun }: { live: LiveState; canRun: boolean }) {
  const hasLast = live.name !== "";
  return (
    <div class="empty-state">
      <h2>{hasLast ? `${live.name} has ended` : "Nothing runs"}</h2>
      {hasLast && <LastCampaign live={live} />}
      {canRun ? (
        <p>
          <a class="button primary" href="/new">
            New experiment
          </a>
        </p>
      ) : (
        <>
          <p>
            This server starts no experiments. The first command here does; the second is watched
            while it lasts:
          </p>
          <pre>{"pushlab console\npushlab run NAME --console 127.0.0.1:8080"}</pre>
        </>
      )}
    </div>
  );
}

function LastCampaign({ live }: { live: LiveState }) {
  const { runs_done, runs_planned, runs_void, runs_failed, result, problem } = live;
  return (
    <>
      {problem != null && (
        <div class="notice notice-loud">
          <strong>It did not come to its end.</strong>
          <pre>{problem}</pre>
        </div>
      )}
      <p>
        {formatCount(runs_done)} of {plural(runs_planned, "run")} done, {formatCount(runs_void)}{" "}
        void, {formatCount(runs_failed)} failed.{" "}
        {result != null && <a href={`/reports/${result}`}>Its report</a>}
      </p>
    </>
  );
}
