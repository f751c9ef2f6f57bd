import type { RefObject } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { ChatVisit } from "./chat-visit";
import { FieldProblem } from "./field-problem";
import { MAX_NAME_LENGTH } from "./interface";
import { useAttempt } from "./use-attempt";

interface ChatEntryProps {
  visit: ChatVisit;
  heading: RefObject<HTMLHeadingElement | null>;
}

/** Where one chooses a name. */
export function ChatEntry({ visit, heading }: ChatEntryProps) {
  const [name, setName] = useState(visit.name);
  const attempt = useAttempt();
  const field = useRef<HTMLInputElement>(null);
  const problem = attempt.problem ?? visit.problem;
  useEffect(() => {
    if (problem !== null) field.current?.focus();
  }, [problem]);

  if (visit.isReturning) {
    return (
      <p class="chat-entry" role="status">
        Coming back as <bdi>{visit.name}</bdi> …
      </p>
    );
  }
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    attempt.run(() => visit.enter(name.trim()));
  };
  return (
    <form class="chat-entry" onSubmit={submit}>
      <h2 ref={heading} tabIndex={-1}>
        Choose a name
      </h2>
      <div class="field">
        <label for="chat-name">Your name</label>
        <div class="field-row">
          <input
            id="chat-name"
            ref={field}
            type="text"
            required
            maxLength={MAX_NAME_LENGTH}
            autocomplete="nickname"
            autocapitalize="off"
            spellcheck={false}
            value={name}
            aria-invalid={problem !== null}
            aria-describedby="chat-name-problem chat-name-rule"
            onInput={({ currentTarget }) => setName(currentTarget.value)}
          />
          <button type="submit" class="primary" aria-disabled={attempt.isBusy}>
            Enter
          </button>
        </div>
        <FieldProblem id="chat-name-problem" problem={problem} />
        <p class="note" id="chat-name-rule">
          Nobody else can have it while you are here: 1 to {MAX_NAME_LENGTH} Latin letters or
          digits, with single spaces, dots, hyphens, underscores or apostrophes between them.
        </p>
      </div>
    </form>
  );
}
