/** Says of an option that the advice names it: nothing measured speaks against it, or it is the least bad. */
export function ChoiceMark() {
  return (
    <span class="choice">
      <span aria-hidden="true">✓ </span>
      <span class="visually-hidden">choice: </span>
    </span>
  );
}
