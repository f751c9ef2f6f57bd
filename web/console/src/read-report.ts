import type { Report } from "./generated/report";

export const REPORT_VERSION = 4;

/** Why there is nothing to draw, for people, with what to do about it. */
export interface Problem {
  title: string;
  advice: string;
  detail?: string;
}

export type ReadResult =
  | { ok: true; report: Report; seed: string }
  | { ok: false; problem: Problem };

/** Reads the text of the data element; a report whose skeleton is broken is a problem, not a blank page. */
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
  const fault = faultIn(data, REPORT, "report");
  if (fault !== null) {
    return failed(
      "The data of this report are incomplete",
      "Make it again from the results store with “pushlab report”.",
      fault,
    );
  }
  const report = data as Report;
  return { ok: true, report, seed: exactSeed(trimmed, report.repeat.seed) };
}

/** What the page walks through: a list, its elements' shape, a record's fields, those of a map, or a text. */
type Shape =
  | "text"
  | "number"
  | "list"
  | { each: Shape }
  | { fields: Record<string, Shape> }
  | { values: Shape }
  | { optional: Shape };

const LACKING: Shape = { fields: { why: "text", detail: "text" } };

const TIMELINE: Shape = {
  fields: {
    ...{ phases: "list", t: "list", published: "list", delivered: "list", probe_t: "list" },
    ...{ server_received: "list", server_sent: "list", queued_bytes: "list" },
    ...{ latency_median: "list", latency_p99: "list", latency_own_median: "list" },
    ...{ collector_time: "list", collector_pause_max: "list", event_loop_lag: "list" },
    ...{ memory_heap: "list", memory_heap_total: "list", memory_external: "list" },
    ...{ cpu: "list", memory: "list", generator_cpu: "list" },
  },
};

const PUBLISHED_SECONDS: Shape = {
  fields: {
    ...{
      published: "list",
      server_received: "list",
      server_sent: "list",
      latency_own_mean: "list",
    },
  },
};

const SERIES: Shape = {
  fields: {
    ...{ key: "text", label: "text", subject: "text", transport: "text", origin: "text" },
    points: {
      each: {
        fields: {
          x: "number",
          figures: { fields: {} },
          failures: "list",
          voids: "list",
          warnings: "list",
          timeline: { optional: TIMELINE },
          published_seconds: { optional: PUBLISHED_SECONDS },
        },
      },
    },
  },
};

const EXPERIMENT: Shape = {
  fields: {
    ...{ name: "text", title: "text", description: "text", charts: "list", columns: "list" },
    axis: { fields: { name: "text", title: "text", unit: "text" } },
    series: { each: SERIES },
    rankings: {
      each: {
        fields: {
          metric: "text",
          places: { each: { fields: { figure: { fields: {} } } } },
          unplaced: { each: LACKING },
        },
      },
    },
    networks: { each: "text" },
    clocks: { optional: { each: "text" } },
    expectations: {
      each: {
        fields: {
          ...{ assertion: "text", finding: "text" },
          judged: { each: { fields: { subject: "text", outcome: "text", detail: "text" } } },
        },
      },
    },
    alarms: { each: { fields: { assertion: "text", outcome: "text", detail: "text" } } },
    tables: {
      each: {
        fields: {
          ...{ title: "text", columns: "list", rows: { each: "list" } },
          stack: {
            optional: {
              fields: {
                parts: { each: { fields: { name: "text", column: "number" } } },
                wholes: "list",
              },
            },
          },
        },
      },
    },
  },
};

const COMPARISON: Shape = {
  fields: {
    ...{ baseline: "text", candidates: "list", summary: "text", missing: "list" },
    rows: {
      each: { fields: { candidate: "text", cell: "text", metric: "text", change: "text" } },
    },
  },
};

const SCORECARD: Shape = {
  fields: {
    options: { each: { fields: { key: "text", label: "text" } } },
    rows: {
      each: {
        fields: {
          ...{ title: "text", note: "text", unit: "text", workloads: "list" },
          failures: { optional: { values: "text" } },
          cells: {
            each: { optional: { fields: { estimate: { fields: {} }, against: { fields: {} } } } },
          },
        },
      },
    },
    advice: {
      each: { fields: { workload: "text", choices: "list", text: "text" } },
    },
    notes: { each: "text" },
  },
};

const STANDING: Shape = { optional: { fields: { figure: { fields: {} } } } };

const LEADERBOARD: Shape = {
  fields: {
    ...{ note: "text", experiments: "list" },
    columns: {
      each: { fields: { id: "text", title: "text", unit: "text", better: "text" } },
    },
    rows: {
      each: {
        fields: {
          ...{ subject: "text", transport: "text" },
          ...{ standings: { each: STANDING }, warnings: { each: "text" } },
          lacking: { values: LACKING },
        },
      },
    },
    warnings: { each: { fields: { code: "text", meaning: "text" } } },
    subjects: { each: { fields: { name: "text", commands: "list" } } },
    left_out: { each: { fields: { subject: "text", reason: "text" } } },
  },
};

const REPORT: Shape = {
  fields: {
    ...{ title: "text", verdict: "list" },
    metrics: { each: { fields: { name: "text", title: "text", unit: "text" } } },
    comparison: { optional: COMPARISON },
    card: { optional: SCORECARD },
    leaderboard: { optional: LEADERBOARD },
    experiments: { each: EXPERIMENT },
    warnings: { each: { fields: { code: "text", message: "text", runs: "list" } } },
    unobserved: { each: { fields: { subject: "text", reason: "text" } } },
    environment: "list",
    repeat: { fields: { commands: "list", experiments: "list" } },
  },
};

/** The first place where the data do not have the shape, in words. */
function faultIn(data: unknown, shape: Shape, place: string): string | null {
  if (shape === "text") return typeof data === "string" ? null : `${place} is not text`;
  if (shape === "number") return typeof data === "number" ? null : `${place} is not a number`;
  if (shape === "list" || "each" in shape) {
    if (!Array.isArray(data)) return `${place} is not a list`;
    if (shape === "list") return null;
    return firstFault(data.entries(), (index, one) =>
      faultIn(one, shape.each, `${place}[${index}]`),
    );
  }
  if ("optional" in shape) return data == null ? null : faultIn(data, shape.optional, place);
  if (!isRecord(data)) return `${place} is not a record`;
  if ("values" in shape) {
    return firstFault(Object.entries(data), (name, one) =>
      faultIn(one, shape.values, `${place}.${name}`),
    );
  }
  return firstFault(Object.entries(shape.fields), (name, field) =>
    faultIn(data[name], field, `${place}.${name}`),
  );
}

function firstFault<K, V>(
  entries: Iterable<[K, V]>,
  check: (key: K, value: V) => string | null,
): string | null {
  for (const [key, value] of entries) {
    const fault = check(key, value);
    if (fault !== null) return fault;
  }
  return null;
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
