import type { Report } from "./generated/report";

export const REPORT_VERSION = 1;

/** Why there is nothing to draw, for people, with what to do about it. */
export interface Problem {
  title: string;
  advice: string;
  detail?: string;
}

export type ReadResult =
  | { ok: true; report: Report; seed: string }
  | { ok: false; problem: Problem };

/** Reads the text of the data element. Shape beyond the version is the writer's contract, not checked. */
export function readReport(text: string): ReadResult {
  const trimmed = text.trim();
  // The template's placeholder; spelled in part only, because its full text may occur once in the page.
  if (trimmed === "" || trimmed.startsWith("__PUSHLAB")) {
    return failed(
      "This is the empty report template",
      "It holds no results. Make a report with “pushlab report”, which fills this template, and open the file it writes.",
    );
  }
  let data: unknown;
  try {
    data = JSON.parse(trimmed);
  } catch (error) {
    return failed(
      "The data of this report cannot be read",
      "The file is damaged or was cut off. Make it again from the results store with “pushlab report”.",
      error instanceof Error ? error.message : String(error),
    );
  }
  const version = isRecord(data) ? data.version : undefined;
  if (version !== REPORT_VERSION) {
    return failed(
      "This page cannot draw this version of a report",
      `It reads version ${REPORT_VERSION}. Make the report again with one version of pushlab: the page and the data come from the same binary.`,
      `version in the data: ${version === undefined ? "none" : JSON.stringify(version)}`,
    );
  }
  if (!isRecord(data) || !Array.isArray(data.experiments) || !isRecord(data.repeat)) {
    return failed(
      "The data of this report are incomplete",
      "Make it again from the results store with “pushlab report”.",
    );
  }
  const report = data as unknown as Report;
  return { ok: true, report, seed: exactSeed(trimmed, report.repeat.seed) };
}

/**
 * A seed has 64 bits and a JavaScript number 53, so a large one is taken from the text. Inside a JSON
 * string the quotation marks would be escaped, hence the look-behind.
 */
function exactSeed(text: string, parsed: number): string {
  if (Number.isSafeInteger(parsed)) return String(parsed);
  return /(?<!\\)"seed"\s*:\s*(\d+)/.exec(text)?.[1] ?? String(parsed);
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function failed(title: string, advice: string, detail?: string): ReadResult {
  return {
    ok: false,
    problem: detail === undefined ? { title, advice } : { title, advice, detail },
  };
}
