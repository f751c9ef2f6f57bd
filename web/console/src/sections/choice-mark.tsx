interface ChoiceMarkProps {
  option: string;
  /** What the advice chose, and the runner-up. */
  choices: readonly string[];
}

/** Says of an option that the advice chose it, or named it as the runner-up. */
export function ChoiceMark({ option, choices }: ChoiceMarkProps) {
  const [sign, words] = option === choices[0] ? ["✓", "choice"] : ["2.", "runner-up"];
  if (!choices.includes(option)) return null;
  return (
    <span class="choice">
      <span aria-hidden="true">{sign} </span>
      <span class="visually-hidden">{words}: </span>
    </span>
  );
}
