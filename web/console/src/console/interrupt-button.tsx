import { useState } from "preact/hooks";
import { type ApiError, ask } from "../live/http-api";
import { ProblemNotice } from "../live/problem-notice";
import { useFocusOn } from "../live/use-focus";
import { asApiError } from "../live/use-resource";

/** Ends the campaign after a second thought; its finished runs stay. */
export function InterruptButton() {
  const [step, setStep] = useState<"" | "asked" | "sent">("");
  const [problem, setProblem] = useState<ApiError | null>(null);
  // The button that was pressed is gone.
  const latest = useFocusOn<HTMLButtonElement>(step);

  const interrupt = async () => {
    setStep("sent");
    try {
      await ask("DELETE", "/api/campaigns");
      setProblem(null);
    } catch (error) {
      setStep("");
      setProblem(asApiError(error));
    }
  };

  return (
    <div class="interrupt">
      {step === "asked" ? (
        <fieldset>
          <legend>Interrupt it? Finished runs stay, and it can be resumed.</legend>
          <button type="button" class="danger" onClick={interrupt}>
            Interrupt
          </button>
          <button type="button" ref={latest} onClick={() => setStep("")}>
            Go on measuring
          </button>
        </fieldset>
      ) : (
        <button
          type="button"
          ref={latest}
          aria-disabled={step === "sent"}
          onClick={() => step === "" && setStep("asked")}
        >
          {step === "sent" ? "Interrupting…" : "Interrupt…"}
        </button>
      )}
      <ProblemNotice title="It goes on" problem={problem} />
    </div>
  );
}
