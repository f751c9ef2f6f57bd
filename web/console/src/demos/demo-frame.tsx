import type { ComponentChildren } from "preact";
import { TrafficCounter } from "../live/traffic-counter";
import { TransportSelect } from "../live/transport-select";
import type { LiveConnection } from "../live/use-connection";
import { LatencyMeter } from "./latency-meter";

interface DemoFrameProps {
  live: LiveConnection;
  /** What the demo is, in a sentence or two. */
  about: ComponentChildren;
  /** Further measurements, above those of the connection. */
  meters?: ComponentChildren;
  children: ComponentChildren;
}

/** What all demos have: the choice of the transport above, the measurements beside. */
export function DemoFrame({ live, about, meters, children }: DemoFrameProps) {
  return (
    <>
      <p class="lead">{about}</p>
      <TransportSelect live={live} />
      <div class="demo">
        <div class="demo-main">{children}</div>
        <aside class="demo-meters" aria-label="Measurements">
          {meters}
          <LatencyMeter live={live} />
          <TrafficCounter live={live} />
        </aside>
      </div>
    </>
  );
}
