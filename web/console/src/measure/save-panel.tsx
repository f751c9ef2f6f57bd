import { useState } from "preact/hooks";
import { type ApiError, ask } from "../live/http-api";
import { ProblemNotice } from "../live/problem-notice";
import { asApiError, useResource } from "../live/use-resource";
import { CopyButton } from "../sections/copy-button";
import { type Measurement, measurementBody } from "./finding";

interface SavePanelProps {
  measurements: readonly Measurement[];
  /** Whether the page was in the background meanwhile. */
  wasHidden: boolean;
}

/** Lets the visitor keep what was found: as a result of this server, or as JSON. */
export function SavePanel({ measurements, wasHidden }: SavePanelProps) {
  const [body] = useState(() => {
    const { userAgent } = navigator;
    return measurementBody(measurements, { userAgent, now: Date.now(), wasHidden });
  });
  const about = useResource<{ can_store: boolean }>("/api/about");
  const [id, setId] = useState<number>();
  const [isStoring, setStoring] = useState(false);
  const [problem, setProblem] = useState<ApiError | null>(null);
  const json = JSON.stringify(body, null, 2);

  const isDone = isStoring || id !== undefined;
  const store = async () => {
    if (isDone) return;
    setStoring(true);
    setProblem(null);
    try {
      setId((await ask<{ id: number }>("POST", "/api/measurements", body)).id);
    } catch (error) {
      setProblem(asApiError(error));
    }
    setStoring(false);
  };

  return (
    <section aria-label="Keep it">
      <h2>Keep it</h2>
      {about.data?.can_store === false ? (
        <p class="note">
          This server keeps no results. One started with <code>pushlab console</code> does.
        </p>
      ) : (
        <>
          <p class="note">
            Stored are the table above without its echoes, each latency, the time, whether this page
            was in the background, and how your browser identifies itself.
          </p>
          <div class="controls">
            <button type="button" aria-disabled={isDone} onClick={store}>
              {id === undefined ? "Store as a run" : "Stored"}
            </button>
            <span role="status">
              {id !== undefined && <a href={`/reports/${id}`}>Report of this measurement</a>}
            </span>
          </div>
        </>
      )}
      <ProblemNotice title="It was not stored" problem={problem} />
      <details>
        <summary>As JSON</summary>
        <div class="code">
          {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, and keys must reach it */}
          <pre class="measure-json" tabIndex={0}>
            {json}
          </pre>
          <CopyButton text={json} what="the measurement as JSON" />
        </div>
      </details>
    </section>
  );
}
