import { render } from "preact";
import { readReport } from "./read-report";
import { Page } from "./sections/page";
import { ProblemPage } from "./sections/problem-page";
import "./styles/tokens.css";
import "./styles/page.css";
import "./styles/chart.css";
import "./styles/dots.css";
import "./styles/stack.css";
import "./styles/findings.css";
import "./styles/table.css";
import "./styles/rankings.css";
import "./styles/leaderboard.css";
import "./styles/scorecard.css";
import "./styles/print.css";

const root = document.getElementById("page");
const result = readReport(document.getElementById("report-data")?.textContent ?? "");
if (root !== null) {
  render(
    result.ok ? (
      <Page report={result.report} seed={result.seed} />
    ) : (
      <ProblemPage problem={result.problem} />
    ),
    root,
  );
}
