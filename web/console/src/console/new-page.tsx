import { useEffect, useState } from "preact/hooks";
import type { About, Preset, PresetText } from "../generated/console";
import { type ApiError, ask } from "../live/http-api";
import { ProblemNotice } from "../live/problem-notice";
import { isFocusLost, useFocusOn } from "../live/use-focus";
import { asApiError, useResource } from "../live/use-resource";
import { CheckSummary } from "./check-summary";
import { type Draft, draftChoices, readDraft } from "./experiment-draft";
import { ExperimentForm } from "./experiment-form";
import { experimentToml } from "./experiment-toml";
import { PresetSelect } from "./preset-select";
import { navigate, useLateChoices, usePlace } from "./router";
import { requestOf, useCheck } from "./use-check";

/** Writes an experiment's file, says what it would be, and starts it. */
export function NewPage() {
  return <NewExperiment key={usePlace().visit} />;
}

function NewExperiment() {
  const about = useResource<About>("/api/about");
  const presets = useResource<Preset[]>("/api/presets");
  const { query } = usePlace();
  const presetName = query.get("preset");
  const profile = presetName === null ? null : query.get("profile");
  const preset = useResource<PresetText>(
    presetName === null ? null : `/api/presets/${encodeURIComponent(presetName)}`,
  );
  const [draft, changeDraft] = useDraft();
  const [edited, setEdited] = useState<string | null>(null);

  // The button that drops what was written by hand goes with it.
  const form = useFocusOn<HTMLHeadingElement>(edited === null ? "form" : "hand", isFocusLost);
  // Another preset replaces what was written by hand.
  useEffect(() => setEdited(null), [presetName]);

  const written = presetName === null ? experimentToml(draft) : (preset.data?.toml ?? null);
  const toml = edited ?? written;
  const checked = useCheck(toml, profile);
  const canRun = about.data?.can_run ?? null;
  const problem = about.problem ?? presets.problem ?? preset.problem;
  const retry = () => {
    for (const one of [about, presets, preset]) one.reload();
  };

  return (
    <>
      <ProblemNotice title="The presets cannot be read" problem={problem} retry={retry} />
      <PresetSelect presets={presets.data} preset={presetName} profile={profile} />
      <div class="new-columns">
        {presetName === null && (
          <section aria-label="Form">
            <h2 ref={form} tabIndex={-1}>
              Form
            </h2>
            <p class="note form-note">
              {edited === null
                ? "The form writes the file; what it has no field for can be added there."
                : "The file has changes made by hand, which the form does not know."}
            </p>
            {edited !== null && (
              <button type="button" class="form-note" onClick={() => setEdited(null)}>
                Drop them and return to the form
              </button>
            )}
            <ExperimentForm draft={draft} isDisabled={edited !== null} change={changeDraft} />
          </section>
        )}
        <section class="new-file" aria-label="File">
          <label>
            <span class="new-heading">File</span>
            <textarea
              value={toml ?? ""}
              rows={26}
              spellcheck={false}
              autocomplete="off"
              onInput={(event) => setEdited(event.currentTarget.value)}
            />
          </label>
          <CheckSummary state={checked} />
          <Start
            toml={toml}
            profile={profile}
            canRun={canRun}
            isGood={checked.isCurrent && checked.check?.problems.length === 0}
            name={checked.check?.name || draft.name}
          />
        </section>
      </div>
    </>
  );
}

/** The form's fields; the address follows them. */
function useDraft(): [Draft, (changes: Partial<Draft>) => void] {
  const { query } = usePlace();
  const [draft, setDraft] = useState(() => readDraft(query));
  const [choices, setChoices] = useState<Record<string, string | null> | null>(null);
  useLateChoices(choices);
  const change = (changes: Partial<Draft>) => {
    const next = { ...draft, ...changes };
    setDraft(next);
    setChoices(draftChoices(next));
  };
  return [draft, change];
}

interface StartProps {
  toml: string | null;
  profile: string | null;
  /** Null until it is known. */
  canRun: boolean | null;
  isGood: boolean;
  name: string;
}

function Start({ toml, profile, canRun, isGood, name }: StartProps) {
  const [isSending, setSending] = useState(false);
  const [problem, setProblem] = useState<ApiError | null>(null);

  const start = async () => {
    if (toml === null || isSending) return;
    setSending(true);
    try {
      await ask("POST", "/api/campaigns", requestOf(toml, profile));
      navigate("/live");
    } catch (error) {
      setProblem(asApiError(error));
      setSending(false);
    }
  };

  return (
    <>
      <div class="start-row">
        <button
          type="button"
          class="primary"
          disabled={toml === null || canRun !== true || !isGood}
          aria-disabled={isSending}
          onClick={start}
        >
          {isSending ? "Starting…" : "Start"}
        </button>
        <a
          class="button"
          download={`${name}.toml`}
          href={`data:application/toml;charset=utf-8,${encodeURIComponent(toml ?? "")}`}
        >
          Download the file
        </a>
      </div>
      {canRun === false && <CannotRun />}
      <ProblemNotice title="It was not started" problem={problem} />
      {problem?.status === 409 && (
        <p>
          <a href="/live">See what runs</a>
        </p>
      )}
    </>
  );
}

function CannotRun() {
  return (
    <div class="notice">
      <p>
        <strong>This server starts no experiments.</strong> Download the file and give it to{" "}
        <code>pushlab run FILE</code>, or open this page in a console that may start them, on the
        machine that is to measure:
      </p>
      <pre>pushlab console</pre>
    </div>
  );
}
