import { useMemo, useState } from "preact/hooks";
import { choose, hrefOf, useLateChoices, usePlace } from "../console/router";
import { plural } from "../format/number";
import {
  type AuctionState,
  FILTERS,
  isOver,
  type Listing,
  listItems,
  readListing,
  SORTS,
} from "./auction-state";
import type { Item } from "./interface";
import { formatMoney } from "./money";
import { formatTimeLeft } from "./time-left";
import type { Auction } from "./use-auction";
import { useNow } from "./use-now";
import { ViewLink } from "./view-link";

/** The address of the auction house with some choices changed; the others stay. */
export function useAuctionHref(): (choices: Record<string, string | null>) => string {
  const { query } = usePlace();
  return (choices) => hrefOf("/demos/auction", { ...Object.fromEntries(query), ...choices });
}

/** All items, as the reader wants to see them. */
export function AuctionList({ auction }: { auction: Auction }) {
  const { state } = auction;
  const now = useNow(1000);
  const me = auction.me ?? null;
  const listing = readListing(usePlace().query);
  const [search, setSearch] = useState(listing.search);
  useLateChoices(useMemo(() => ({ search: search || null }), [search]));
  const wanted = { ...listing, search };
  const items = state.items && listItems(state.items.values(), wanted, me, now);
  const href = useAuctionHref();
  return (
    <>
      <div class="controls">
        <Choice name="show" label="Show" options={FILTERS} value={listing.filter} first="open" />
        <Choice name="sort" label="Sort by" options={SORTS} value={listing.sort} first="ending" />
        <label>
          Search
          <input
            type="search"
            value={search}
            onInput={({ currentTarget }) => setSearch(currentTarget.value)}
          />
        </label>
        {me !== null && (
          <ViewLink class="button primary" href={href({ add: "1", item: null })}>
            Offer something
          </ViewLink>
        )}
      </div>
      <p class="note auction-count" role="status">
        {items === undefined ? "Loading …" : countOf(items.length, state, listing)}
      </p>
      <ul class="auction-items">
        {items?.map((item) => (
          <Row key={item.id} item={item} state={state} me={me} now={now} />
        ))}
      </ul>
    </>
  );
}

function countOf(shown: number, { items }: AuctionState, { filter }: Listing): string {
  const all = items?.size ?? 0;
  if (all === 0) return "The house is empty: log in and offer something.";
  const words = `${plural(shown, "item")} of ${all}`;
  return shown === 0 && filter === "open" ? `${words}; those that have ended are under All` : words;
}

interface ChoiceProps {
  name: string;
  label: string;
  options: Readonly<Record<string, string>>;
  value: string;
  /** The one that the address need not name. */
  first: string;
}

function Choice({ name, label, options, value, first }: ChoiceProps) {
  return (
    <label>
      {label}
      <select
        value={value}
        onChange={({ currentTarget: { value: next } }) =>
          choose({ [name]: next === first ? null : next })
        }
      >
        {Object.entries(options).map(([option, text]) => (
          <option key={option} value={option}>
            {text}
          </option>
        ))}
      </select>
    </label>
  );
}

interface RowProps {
  item: Item;
  state: AuctionState;
  me: string | null;
  now: number;
}

function Row({ item, state, me, now }: RowProps) {
  const { id, name, owner, description, version } = item;
  const href = useAuctionHref();
  const isFresh = state.news.some((news) => news.item.id === id && news.item.version === version);
  return (
    <li class="auction-row" data-item={id}>
      <div class="auction-what">
        <ViewLink href={href({ item: `${id}`, add: null })} dir="auto">
          {name}
        </ViewLink>{" "}
        <Marks item={item} me={me} now={now} isOutbid={state.outbid.has(id)} />
        <p class="note auction-words" dir="auto">
          {description || "No description"}
        </p>
        <p class="note">
          offered by <bdi>{owner}</bdi>
        </p>
      </div>
      <Price key={version} item={item} isFresh={isFresh} />
      <TimeLeft item={item} now={now} />
    </li>
  );
}

/** What an item is to who looks. */
export function Marks({
  item,
  me,
  now,
  isOutbid,
}: Omit<RowProps, "state"> & { isOutbid: boolean }) {
  const isMine = item.leading !== null && item.leading.bidder === me;
  return (
    <>
      {item.owner === me && <span class="tag">Yours</span>}{" "}
      {isMine && <span class="tag tag-good">{isOver(item, now) ? "You won" : "You lead"}</span>}{" "}
      {isOutbid && <span class="tag tag-warning">Outbid</span>}
    </>
  );
}

/** The leading bid, or what the first must be. */
export function Price({ item, isFresh }: { item: Item; isFresh: boolean }) {
  const { leading, minimum_cents, bids } = item;
  return (
    <div class={`auction-price ${isFresh ? "fresh" : ""}`}>
      <span class="auction-amount">{formatMoney(leading?.amount_cents ?? minimum_cents)}</span>
      <span class="note">
        {leading === null ? (
          "minimum, no bid yet"
        ) : (
          <>
            <bdi>{leading.bidder}</bdi>, {plural(bids, "bid")}
          </>
        )}
      </span>
    </div>
  );
}

/** How long bids are taken yet. */
export function TimeLeft({ item, now }: { item: Item; now: number }) {
  const left = item.expires_ms - now;
  const date = new Date(item.expires_ms);
  if (isOver(item, now)) {
    return (
      <div class="auction-time">
        <span class="tag">Ended</span>
        <span class="note">{item.leading === null ? "not sold" : "sold"}</span>
      </div>
    );
  }
  return (
    <div class={`auction-time ${left < 60_000 ? "auction-soon" : ""}`}>
      <time dateTime={date.toISOString()} title={date.toLocaleString("en-GB")}>
        {formatTimeLeft(left)}
      </time>
      <span class="note">left</span>
    </div>
  );
}
