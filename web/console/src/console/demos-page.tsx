import { TRANSPORT_NAMES } from "../live/transport-select";

const DEMOS = [
  {
    path: "/demos/ticker",
    title: "Ticker",
    about: "Stock prices from a back end, many a second, and a chart that moves.",
    shows: "One publishes, everybody receives: what pushing saves over polling.",
  },
  {
    path: "/demos/chat",
    title: "Chat",
    about: "Rooms, who is there, private messages.",
    shows: "Everybody writes, everybody reads: what it costs to publish over each transport.",
  },
  {
    path: "/demos/auction",
    title: "Auction house",
    about: "Accounts, items that expire, and bids, one of which wins.",
    shows: "Pages that show what a database has committed, as soon as it has.",
  },
] as const;

/** The three demos, and what each shows. */
export function DemosPage() {
  return (
    <>
      <p class="lead">
        Three applications on this server. Each can be switched to any transport while it runs, and
        shows its latency, requests and bytes.
      </p>
      <ul class="demo-list">
        {DEMOS.map(({ path, title, about, shows }) => (
          <li key={path}>
            <h2>
              <a href={path}>{title}</a>
            </h2>
            <p>{about}</p>
            <p class="note">{shows}</p>
            <ul class="demo-transports" aria-label={`${title} over one transport`}>
              {Object.entries(TRANSPORT_NAMES).map(([name, transport]) => (
                <li key={name}>
                  <a href={`${path}?transport=${name}`}>{transport}</a>
                </li>
              ))}
            </ul>
          </li>
        ))}
      </ul>
      <p class="note">
        Open one in two windows to see messages arrive in both. To see what your own network does to
        each transport, <a href="/measure">measure this browser</a>.
      </p>
    </>
  );
}
