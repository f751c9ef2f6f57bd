import { useEffect, useState } from "preact/hooks";
import { type ApiError, readAnswer } from "../live/http-api";
import { fetchWithPass } from "../live/pass";
import { ProblemNotice } from "../live/problem-notice";
import { asApiError } from "../live/use-resource";

/** The server's reports are below this path. A browser that follows a link sends no pass, so it gets this page. */
export const REPORTS = "/reports/";

/** Fetches the report at this address and replaces the document with it. */
export function ReportPage() {
  const [problem, setProblem] = useState<ApiError | null>(null);
  useEffect(() => {
    openReport().catch((error) => setProblem(asApiError(error)));
  }, []);
  return <ProblemNotice title="The report cannot be shown" problem={problem} />;
}

/** @throws ApiError */
async function openReport(): Promise<void> {
  const address = location.pathname + location.search;
  const response = await fetchWithPass(address);
  const text = await response.text();
  if (response.status !== 200) {
    readAnswer(address, response.status, text);
    return;
  }
  // The policy of this page still holds: of scripts it allows the report's own beside this one.
  document.open();
  document.write(text);
  document.close();
}
