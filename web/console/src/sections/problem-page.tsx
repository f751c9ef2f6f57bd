import type { Problem } from "../read-report";

export function ProblemPage({ problem }: { problem: Problem }) {
  return (
    <main class="problem">
      <h1>{problem.title}</h1>
      <p>{problem.advice}</p>
      {problem.detail !== undefined && <pre>{problem.detail}</pre>}
    </main>
  );
}
