import type { Fact } from "../generated/report";

export function Environment({ facts }: { facts: readonly Fact[] }) {
  if (facts.length === 0) return null;
  return (
    <section id="environment" tabIndex={-1} aria-labelledby="environment-title">
      <h2 id="environment-title">Environment</h2>
      <dl class="environment">
        {facts.map((fact) => (
          <div key={fact.label}>
            <dt>{fact.label}</dt>
            <dd>{fact.value}</dd>
          </div>
        ))}
      </dl>
    </section>
  );
}
