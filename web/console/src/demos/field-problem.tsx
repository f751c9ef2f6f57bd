import type { ApiError } from "../live/http-api";

/** What to do, where the message does not say it. */
const ACTIONS: Readonly<Record<string, string>> = {
  "database-away": "Try again in a moment.",
  overloaded: "Try again in a moment.",
  "internal-error": "Try again; if it lasts, tell who runs this server.",
  forbidden: "Load this page anew and try again.",
};

/** What is wrong, beside where it is to be mended, and what to do; read aloud when it appears. */
export function FieldProblem({ id, problem }: { id?: string; problem: ApiError | string | null }) {
  return (
    <p class="field-problem" id={id} role="alert">
      {problem !== null && (
        <>
          <span aria-hidden="true">⚠ </span>
          {typeof problem === "string" ? problem : sentence(problem)}
        </>
      )}
    </p>
  );
}

function sentence({ code, message }: ApiError): string {
  const text = message.charAt(0).toUpperCase() + message.slice(1).replace(/([^.?!])$/, "$1.");
  const action = Object.hasOwn(ACTIONS, code) ? ACTIONS[code] : undefined;
  return action === undefined || text.endsWith(action) ? text : `${text} ${action}`;
}
