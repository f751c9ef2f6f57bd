import type { MetricInfo } from "../generated/report";

/** What each metric is, for those whose charts have no room to say so. */
export function MetricsSection({ metrics }: { metrics: readonly MetricInfo[] }) {
  const described = metrics.filter((metric) => metric.description !== "");
  if (described.length === 0) return null;
  return (
    <section id="metrics" tabIndex={-1} aria-labelledby="metrics-title">
      <h2 id="metrics-title">What was measured</h2>
      <dl class="environment">
        {described.map((metric) => (
          <div key={metric.name}>
            <dt>
              {metric.title}
              {metric.unit !== "" && `, ${metric.unit}`}
            </dt>
            <dd>{metric.description}</dd>
          </div>
        ))}
      </dl>
    </section>
  );
}
