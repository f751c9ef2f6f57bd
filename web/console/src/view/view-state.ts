/** What a reader has chosen. It lives in the URL, so that a link reproduces the view. */
export interface ViewState {
  /** Id of the section that was jumped to. */
  at: string | null;
  /** Key of the series that stands out in the charts. */
  focus: string | null;
  columns: "main" | "all";
  /** Whether a study's numbers are drawn beside the measured ones. */
  published: "shown" | "hidden";
  /** Whether a comparison lists what did not change. */
  unchanged: "shown" | "hidden";
  /** The transport that the leaderboard is narrowed to. */
  transport: string | null;
  /** The kind of application that the scorecard is narrowed to. */
  workload: string | null;
  /** By experiment name. */
  timelines: Record<string, TimelineChoice>;
  /** By experiment name, and by `LEADERBOARD`. */
  sorts: Record<string, Sort>;
}

export interface TimelineChoice {
  series: string;
  /** Place on the axis. */
  x: number;
}

export interface Sort {
  column: string;
  descending: boolean;
}

export const DEFAULT_VIEW: ViewState = {
  at: null,
  focus: null,
  columns: "main",
  published: "shown",
  unchanged: "hidden",
  transport: null,
  workload: null,
  timelines: {},
  sorts: {},
};

/** Where the leaderboard's order is kept; no experiment can be called so. */
export const LEADERBOARD = "@leaderboard";

const TIMELINE = "timeline.";
const SORT = "sort.";

/** Reads a URL fragment, with or without its `#`. What is not understood is left out. */
export function parseView(fragment: string): ViewState {
  const view: ViewState = { ...DEFAULT_VIEW, timelines: {}, sorts: {} };
  for (const [name, value] of new URLSearchParams(fragment.replace(/^#/, ""))) {
    if (name === "at") view.at = value || null;
    else if (name === "focus") view.focus = value || null;
    else if (name === "columns" && value === "all") view.columns = "all";
    else if (name === "published" && value === "hidden") view.published = "hidden";
    else if (name === "unchanged" && value === "shown") view.unchanged = "shown";
    else if (name === "transport") view.transport = value || null;
    else if (name === "workload") view.workload = value || null;
    else if (name.startsWith(TIMELINE)) {
      // The place stands last: a key may contain any character.
      const match = /^(.+)@(\d{1,12}(?:\.\d{1,9})?)$/.exec(value);
      if (match?.[1] !== undefined) {
        view.timelines[name.slice(TIMELINE.length)] = {
          series: match[1],
          x: Number(match[2]),
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
  if (view.focus !== null) parameters.set("focus", view.focus);
  if (view.columns !== DEFAULT_VIEW.columns) parameters.set("columns", view.columns);
  if (view.published !== DEFAULT_VIEW.published) parameters.set("published", view.published);
  if (view.unchanged !== DEFAULT_VIEW.unchanged) parameters.set("unchanged", view.unchanged);
  if (view.transport !== null) parameters.set("transport", view.transport);
  if (view.workload !== null) parameters.set("workload", view.workload);
  for (const [experiment, choice] of Object.entries(view.timelines)) {
    parameters.set(TIMELINE + experiment, `${choice.series}@${choice.x}`);
  }
  for (const [experiment, sort] of Object.entries(view.sorts)) {
    parameters.set(SORT + experiment, (sort.descending ? "-" : "") + sort.column);
  }
  // Legal in a fragment, and links stay readable.
  return parameters.toString().replaceAll("%2F", "/").replaceAll("%40", "@");
}
