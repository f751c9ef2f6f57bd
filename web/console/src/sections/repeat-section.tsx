import type { Repeat } from "../generated/report";
import { CopyButton } from "./copy-button";

/** The commands, the seed and the experiments: all that is needed to do it again. */
export function RepeatSection({ repeat, seed }: { repeat: Repeat; seed: string }) {
  return (
    <section id="repeat" tabIndex={-1} aria-labelledby="repeat-title">
      <h2 id="repeat-title">How to repeat it</h2>
      {repeat.commands.length > 0 && (
        <div class="code">
          <CopyButton text={repeat.commands.join("\n")} what="the commands" />
          <Code>{repeat.commands.join("\n")}</Code>
        </div>
      )}
      <p>
        Seed of the run order and of all pacing: <code>{seed}</code>
      </p>
      {repeat.experiments.map((experiment) => (
        <details key={experiment.label}>
          <summary>
            Experiment <code>{experiment.label}</code>
          </summary>
          <div class="code">
            <CopyButton text={experiment.value} what={`the experiment ${experiment.label}`} />
            <Code>{experiment.value}</Code>
          </div>
        </details>
      ))}
    </section>
  );
}

/** Text to be copied; it scrolls sideways, so the keyboard must reach it. */
function Code({ children }: { children: string }) {
  // biome-ignore lint/a11y/noNoninteractiveTabindex: a box that scrolls must take the focus
  return <pre tabIndex={0}>{children}</pre>;
}
