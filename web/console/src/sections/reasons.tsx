/** Subjects, each with what is to be said of it. */
export function Reasons({ of }: { of: readonly { subject: string; reason: string }[] }) {
  return (
    <dl class="reasons">
      {of.map(({ subject, reason }) => (
        <div key={`${subject} ${reason}`}>
          <dt>{subject}</dt>
          <dd>{reason}</dd>
        </div>
      ))}
    </dl>
  );
}
