import { useEffect, useState } from "preact/hooks";
import { formatCount, joinUnit, plural } from "../format/number";
import type { About, LiveRun, LiveStart, LiveState } from "../generated/console";
import { LiveChart } from "../live/live-chart";
import { ProblemNotice } from "../live/problem-notice";
import { Readings } from "../live/readings";
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
  const { runs_done, runs_planned } = live;
  const counts = runCounts(live);
  return (
    <div class="progress">
      <progress value={runs_done} max={Math.max(1, runs_planned)} aria-label="Runs done">
        {counts[0]}
      </progress>
      <p class="facts">
        {counts.map((text) => (
          <span key={text}>{text}</span>
        ))}
      </p>
    </div>
  );
}

/** `12 of 40 runs`, `1 void`, `0 failed`. */
function runCounts({ runs_done, runs_planned, runs_void, runs_failed }: LiveState): string[] {
  const done = `${formatCount(runs_done)} of ${plural(runs_planned, "run")}`;
  return [done, `${formatCount(runs_void)} void`, `${formatCount(runs_failed)} failed`];
}

function Counts({ run }: { run: LiveRun | null }) {
  const count = (value: number | undefined) => (value === undefined ? "–" : formatCount(value));
  const seconds = run === null ? "–" : formatCount(Math.floor(run.elapsed_ms / 1000));
  return (
    <Readings
      of={{
        "Time in the run": run === null ? seconds : joinUnit(seconds, "s"),
        "Clients subscribed": count(run?.clients),
        Published: count(run?.published),
        Delivered: count(run?.delivered),
      }}
    />
  );
}

const BYTES_PER_MIB = 1_048_576;

type Read = (sample: LiveSample) => number | null;

interface ChartPlan {
  title: string;
  unit: string;
  lines: Readonly<Record<string, Read>>;
}

const CHARTS: readonly ChartPlan[] = [
  { title: "Deliveries", unit: "/s", lines: { deliveries: (one) => one.deliveriesPerS } },
  {
    title: "Latency",
    unit: "ms",
    lines: {
      median: (one) => one.latencyP50Ms,
      "99th percentile": (one) => one.latencyP99Ms,
    },
  },
  {
    title: "CPU, of one core",
    unit: "%",
    lines: { subject: (one) => one.subjectCpu, generator: (one) => one.generatorCpu },
  },
  {
    title: "Memory of the subject",
    unit: "MiB",
    lines: {
      memory: ({ subjectRssBytes: bytes }) => bytes && bytes / BYTES_PER_MIB,
    },
  },
];

const LOOKS = [1, 2, 3] as const;

function Charts({ samples }: { samples: readonly LiveSample[] }) {
  return (
    <div class="live-charts">
      {CHARTS.map(({ title, unit, lines }) => (
        <LiveChart
          key={title}
          length={MAX_SAMPLES}
          title={title}
          unit={unit}
          lines={Object.entries(lines).map(([name, read], at) => ({
            name,
            values: samples.map(read),
            look: LOOKS[at] ?? 3,
          }))}
        />
      ))}
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
            This server starts no experiments. The first command here does; the second can be
            watched while it lasts:
          </p>
          <pre>{"pushlab console\npushlab run NAME --console 127.0.0.1:8080"}</pre>
        </>
      )}
    </div>
  );
}

function LastCampaign({ live }: { live: LiveState }) {
  const { result, problem } = live;
  const [done, ...bad] = runCounts(live);
  return (
    <>
      {problem != null && (
        <div class="notice notice-loud">
          <strong>It did not finish.</strong>
          <pre>{problem}</pre>
        </div>
      )}
      <p>
        {done} done, {bad.join(", ")}.{" "}
        {result != null && <a href={`/reports/${result}`}>Its report</a>}
      </p>
    </>
  );
}
