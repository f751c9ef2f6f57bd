/** What a reader has chosen. It lives in the URL, so that a link reproduces the view. */
export interface ViewState {
  /** Id of the section that was jumped to. */
  at: string | null;
  latency: "median" | "p99";
  /** Key of the series that stands out in the charts. */
  focus: string | null;
  columns: "main" | "all";
  /** By experiment name. */
  timelines: Record<string, TimelineChoice>;
  /** By experiment name. */
  sorts: Record<string, Sort>;
}

export interface TimelineChoice {
  series: string;
  clients: number;
}

export interface Sort {
  column: string;
  descending: boolean;
}

export const DEFAULT_VIEW: ViewState = {
  at: null,
  latency: "median",
  focus: null,
  columns: "main",
  timelines: {},
  sorts: {},
};

const TIMELINE = "timeline.";
const SORT = "sort.";

/** Reads a URL fragment, with or without its `#`. What is not understood is left out. */
export function parseView(fragment: string): ViewState {
  const view: ViewState = { ...DEFAULT_VIEW, timelines: {}, sorts: {} };
  for (const [name, value] of new URLSearchParams(fragment.replace(/^#/, ""))) {
    if (name === "at") view.at = value || null;
    else if (name === "latency" && value === "p99") view.latency = "p99";
    else if (name === "focus") view.focus = value || null;
    else if (name === "columns" && value === "all") view.columns = "all";
    else if (name.startsWith(TIMELINE)) {
      // The client count stands last: a key may contain any character.
      const match = /^(.+)@(\d{1,9})$/.exec(value);
      if (match?.[1] !== undefined) {
        view.timelines[name.slice(TIMELINE.length)] = {
          series: match[1],
          clients: Number(match[2]),
        };
      }
    } else if (name.startsWith(SORT)) {
      const column = value.replace(/^-/, "");
      if (column !== "") {
        view.sorts[name.slice(SORT.length)] = { column, descending: value.startsWith("-") };
      }
    }
  }
  return view;
}

/** The fragment of a view without its `#`; what is at its default is left out. */
export function serializeView(view: ViewState): string {
  const parameters = new URLSearchParams();
  if (view.at !== null) parameters.set("at", view.at);
  if (view.latency !== DEFAULT_VIEW.latency) parameters.set("latency", view.latency);
  if (view.focus !== null) parameters.set("focus", view.focus);
  if (view.columns !== DEFAULT_VIEW.columns) parameters.set("columns", view.columns);
  for (const [experiment, choice] of Object.entries(view.timelines)) {
    parameters.set(TIMELINE + experiment, `${choice.series}@${choice.clients}`);
  }
  for (const [experiment, sort] of Object.entries(view.sorts)) {
    parameters.set(SORT + experiment, (sort.descending ? "-" : "") + sort.column);
  }
  // Legal in a fragment, and links stay readable.
  return parameters.toString().replaceAll("%2F", "/").replaceAll("%40", "@");
}
