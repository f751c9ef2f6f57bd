import { useEffect, useRef, useState } from "preact/hooks";

/** Copies a text; where the browser forbids it, selects it for the reader to copy. */
export function CopyButton({ text, what }: { text: string; what: string }) {
  const button = useRef<HTMLButtonElement>(null);
  const [outcome, setOutcome] = useState<"" | "copied" | "selected">("");

  useEffect(() => {
    if (outcome === "") return;
    const timer = setTimeout(() => setOutcome(""), 2500);
    return () => clearTimeout(timer);
  }, [outcome]);

  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      setOutcome("copied");
    } catch {
      const block = button.current?.parentElement?.querySelector("pre");
      if (block != null) getSelection()?.selectAllChildren(block);
      setOutcome("selected");
    }
  };

  return (
    <>
      <button type="button" class="copy" ref={button} aria-label={`Copy ${what}`} onClick={copy}>
        {outcome === "" ? "Copy" : outcome === "copied" ? "Copied" : "Selected"}
      </button>
      <span class="visually-hidden" role="status">
        {outcome}
      </span>
    </>
  );
}
