import { useEffect, useRef, useState } from "preact/hooks";
import { formatCount, formatQuantity } from "../format/number";
import { Readings } from "./readings";
import { addMessage, addRequests, NO_TRAFFIC, type Traffic } from "./traffic";
import type { LiveConnection } from "./use-connection";

/** Times a second that the counter is drawn; busy channels bring more messages than anyone can read. */
const DRAWS_PER_S = 4;

/** Counts the requests and bytes of a connection since it was made, and says what a browser cannot count. */
export function TrafficCounter({ live }: { live: LiveConnection }) {
  const { requests, requestBytes, messages, messageBytes } = useTraffic(live);
  return (
    <section class="meter" aria-label="Traffic of this page's connection">
      <h2>Traffic</h2>
      <Readings
        of={{
          Requests: formatCount(requests),
          "Bytes of finished requests": formatQuantity(requestBytes, "B"),
          Messages: formatCount(messages),
          "Bytes of messages": formatQuantity(messageBytes, "B"),
        }}
      />
      <details>
        <summary>What is counted</summary>
        <p class="note">
          Those of the subscription and what a demo’s page asks for, the clock’s left out. Requests
          come from the browser’s Resource Timing, which tells of a request when it has ended: an
          open stream is not among them, and a WebSocket never is. Their bytes are those of the
          messages’ data, without framing. Bytes that are sent, TLS and TCP are seen by no page;
          browsers estimate the size of heads.
        </p>
      </details>
    </section>
  );
}

/** The traffic of a connection; begins again with each. */
export function useTraffic({ connection, since }: LiveConnection): Traffic {
  const [shown, setShown] = useState(NO_TRAFFIC);
  const counted = useRef(NO_TRAFFIC);
  useEffect(() => {
    counted.current = NO_TRAFFIC;
    setShown(NO_TRAFFIC);
    if (connection === null) return;
    const observer = new PerformanceObserver((list) => {
      const entries = list.getEntries() as PerformanceResourceTiming[];
      counted.current = addRequests(counted.current, entries, location.origin, since);
    });
    observer.observe({ type: "resource", buffered: true });
    const count = ({ data }: { data: unknown }) => {
      counted.current = addMessage(counted.current, data);
    };
    connection.addEventListener("message", count);
    const timer = setInterval(() => setShown(counted.current), 1000 / DRAWS_PER_S);
    return () => {
      observer.disconnect();
      connection.removeEventListener("message", count);
      clearInterval(timer);
    };
  }, [connection, since]);
  return shown;
}
