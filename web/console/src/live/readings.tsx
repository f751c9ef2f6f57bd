import type { ComponentChildren } from "preact";

interface ReadingsProps {
  /** Each with its name, in the order in which they stand. */
  of: Readonly<Record<string, ComponentChildren>>;
}

/** Measurements side by side, each below its name. */
export function Readings({ of }: ReadingsProps) {
  return (
    <dl class="readings">
      {Object.entries(of).map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}
