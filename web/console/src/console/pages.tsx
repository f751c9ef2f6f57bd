import type { ComponentType } from "preact";
import { AuctionPage } from "../demos/auction-page";
import { ChatPage } from "../demos/chat-page";
import { TickerPage } from "../demos/ticker-page";
import { MeasurePage } from "../measure/measure-page";
import { ComparePage } from "./compare-page";
import { DemosPage } from "./demos-page";
import { LivePage } from "./live-page";
import { NewPage } from "./new-page";
import { ResultsPage } from "./results-page";

/** A page of the console. The shell draws its title as the heading, so that a page begins below it. */
export interface ConsolePage {
  path: string;
  title: string;
  /** What the navigation calls it; pages without one are reached from others. */
  link?: string;
  Page: ComponentType;
}

/** Every page. The server answers each of these paths with the same document. */
export const PAGES: readonly ConsolePage[] = [
  { path: "/", title: "Results", link: "Results", Page: ResultsPage },
  { path: "/live", title: "Live", link: "Live", Page: LivePage },
  { path: "/compare", title: "Compare two results", link: "Compare", Page: ComparePage },
  { path: "/new", title: "New experiment", link: "New", Page: NewPage },
  { path: "/measure", title: "Measure this browser", link: "Measure", Page: MeasurePage },
  { path: "/demos", title: "Demos", link: "Demos", Page: DemosPage },
  { path: "/demos/ticker", title: "Ticker", Page: TickerPage },
  { path: "/demos/chat", title: "Chat", Page: ChatPage },
  { path: "/demos/auction", title: "Auction house", Page: AuctionPage },
];
