/** Says of an option that the advice names it: it is a choice for the workload. */
export function ChoiceMark() {
  return (
    <span class="choice">
      <span aria-hidden="true">✓ </span>
      <span class="visually-hidden">choice: </span>
    </span>
  );
}
