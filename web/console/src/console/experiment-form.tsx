import type { ComponentChildren } from "preact";
import { useId } from "preact/hooks";
import {
  type Draft,
  type DraftField,
  EXPERIMENT_TRANSPORTS,
  NETWORKS,
  PHASE_FIELDS,
  problemsOf,
  SCENARIOS,
  scenarioOf,
  splitList,
  toggleItem,
} from "./experiment-draft";

interface ExperimentFormProps {
  draft: Draft;
  /** Nothing can be changed while the file has changes made by hand. */
  isDisabled: boolean;
  change: (changes: Partial<Draft>) => void;
}

interface Part {
  draft: Draft;
  problems: Partial<Record<DraftField, string>>;
  change: (changes: Partial<Draft>) => void;
}

/** The fields of an experiment of one's own. */
export function ExperimentForm({ draft, isDisabled, change }: ExperimentFormProps) {
  const part: Part = { draft, change, problems: problemsOf(draft) };
  return (
    <fieldset class="experiment-form" disabled={isDisabled}>
      <legend class="visually-hidden">Experiment</legend>
      <div class="field-row">
        <Field {...part} field="name" label="Name" />
        <Field {...part} field="title" label="Title" isWide />
      </div>
      <Choices {...part} field="transports" label="Transports" all={EXPERIMENT_TRANSPORTS} />
      <div class="field-row">
        <Field {...part} field="clients" label="Clients" hint="each is measured" />
        <Field {...part} field="repeats" label="Repeats" isNumber hint="runs of each" />
        <Field {...part} field="subjects" label="Subjects" hint="pushlab, socketio…" />
      </div>
      <Traffic {...part} />
      <Choices {...part} field="networks" label="Networks" all={NETWORKS} hint="none: loopback" />
      <fieldset>
        <legend>Phases, ms</legend>
        <div class="field-row phases-row">
          {PHASE_FIELDS.map((field) => (
            <Field {...part} key={field} field={field} label={field.replace("_", "-")} isNumber />
          ))}
        </div>
      </fieldset>
    </fieldset>
  );
}

function Traffic(part: Part) {
  const kind = scenarioOf(part.draft);
  const labels: Partial<Record<DraftField, string>> = {
    interval: kind === "feed" || kind === "rooms" ? "Interval, ms" : "Interval of each, ms",
    payload: "Payload, bytes",
    publishers: "Publishers",
    rooms: "Rooms",
    rooms_per_client: "Rooms per client",
  };
  return (
    <fieldset>
      <legend>Traffic</legend>
      <div class="field-row">
        <div class="field field-whole">
          <label>
            Scenario
            <select
              value={kind}
              onChange={(event) => part.change({ scenario: event.currentTarget.value })}
            >
              {Object.entries(SCENARIOS).map(([name, { about }]) => (
                <option key={name} value={name}>
                  {name}: {about}
                </option>
              ))}
            </select>
          </label>
        </div>
        {SCENARIOS[kind].fields.map((field) => (
          <Field {...part} key={field} field={field} label={labels[field] ?? field} isNumber />
        ))}
      </div>
    </fieldset>
  );
}

interface FieldProps extends Part {
  field: DraftField;
  label: string;
  hint?: string;
  isNumber?: boolean;
  isWide?: boolean;
}

function Field({ draft, problems, change, field, label, hint, isNumber, isWide }: FieldProps) {
  const id = useId();
  const problem = problems[field];
  return (
    <div class={isWide ? "field field-wide" : "field"}>
      <label>
        {label}
        <input
          type="text"
          inputMode={isNumber ? "decimal" : "text"}
          value={draft[field]}
          spellcheck={false}
          autocomplete="off"
          aria-invalid={problem !== undefined}
          aria-describedby={id}
          onInput={(event) => change({ [field]: event.currentTarget.value })}
        />
      </label>
      <FieldNote id={id} problem={problem} hint={hint} />
    </div>
  );
}

interface ChoicesProps extends Part {
  field: "transports" | "networks";
  label: string;
  all: readonly string[];
  hint?: string;
}

function Choices({ draft, problems, change, field, label, all, hint }: ChoicesProps) {
  const id = useId();
  const chosen = splitList(draft[field]);
  return (
    <fieldset aria-describedby={id}>
      <legend>{label}</legend>
      <div class="choices">
        {all.map((item) => (
          <label key={item}>
            <input
              type="checkbox"
              checked={chosen.includes(item)}
              onChange={() => change({ [field]: toggleItem(draft[field], item, all) })}
            />
            {item}
          </label>
        ))}
      </div>
      <FieldNote id={id} problem={problems[field]} hint={hint} />
    </fieldset>
  );
}

interface FieldNoteProps {
  id: string;
  problem: ComponentChildren;
  hint: string | undefined;
}

/** Always there, so that a problem moves nothing. */
function FieldNote({ id, problem, hint }: FieldNoteProps) {
  return (
    <p id={id} class={problem === undefined ? "note" : "note field-problem"}>
      {problem ?? hint}
    </p>
  );
}
