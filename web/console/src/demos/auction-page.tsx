import type { ComponentChildren, RefObject } from "preact";
import { usePlace } from "../console/router";
import { ProblemNotice } from "../live/problem-notice";
import { useFocusOn } from "../live/use-focus";
import { AuctionAccount } from "./auction-account";
import { AuctionItem } from "./auction-item";
import { AuctionList, useAuctionHref } from "./auction-list";
import { AuctionOffer } from "./auction-offer";
import type { AuctionState } from "./auction-state";
import { DemoFrame } from "./demo-frame";
import type { HouseMessage } from "./interface";
import { formatMoney } from "./money";
import { type Auction, useAuction } from "./use-auction";
import { ViewLink } from "./view-link";

/** An auction house in which everybody sees each bid at once. */
export function AuctionPage() {
  const auction = useAuction();
  const { state, snapshot, live, me, account } = auction;
  return (
    <DemoFrame
      live={live}
      about="Things are offered until their time is over; the highest bid leads. Each bid is one step in the database, and everybody who looks is told once it is committed."
    >
      <AuctionAccount auction={auction} />
      {state.isOther && (
        <p class="notice" role="status">
          This is another house than before: the server was restarted and had kept neither its items
          nor its accounts.
        </p>
      )}
      <ProblemNotice
        title="The items cannot be loaded"
        problem={snapshot.problem}
        retry={snapshot.reload}
      />
      <p class="auction-news note" role="status">
        {newsOf(state)}
      </p>
      {/* Not before it is known what stands above it. */}
      {(me !== undefined || account.problem !== null) && <View auction={auction} />}
      <Outbid state={state} />
    </DemoFrame>
  );
}

/** What the address asks for: an item, the form, or the list. */
function View({ auction }: { auction: Auction }) {
  const { query } = usePlace();
  const { state, me } = auction;
  const [id, isOffering] = [query.get("item"), query.has("add")];
  const view = isOffering ? "add" : (id ?? "list");
  const heading = useFocusOn<HTMLHeadingElement>(view);
  if (isOffering) {
    return (
      <Section key={view} title="Offer something" heading={heading} hasBack>
        {me === null ? (
          <p class="notice">Log in to offer something.</p>
        ) : (
          <AuctionOffer auction={auction} />
        )}
      </Section>
    );
  }
  if (id === null) {
    return (
      <Section key={view} title="Items" heading={heading}>
        <AuctionList auction={auction} />
      </Section>
    );
  }
  const item = state.items?.get(Number(id));
  return (
    <Section key={view} title={item?.name ?? "Item"} heading={heading} hasBack>
      {item === undefined ? (
        <p role="status">
          {state.items === undefined ? "Loading …" : "There is no such item, or it was removed."}
        </p>
      ) : (
        <AuctionItem auction={auction} item={item} />
      )}
    </Section>
  );
}

interface SectionProps {
  title: string;
  heading: RefObject<HTMLHeadingElement | null>;
  /** Whether there is a list to go back to. */
  hasBack?: boolean;
  children: ComponentChildren;
}

function Section({ title, heading, hasBack = false, children }: SectionProps) {
  const href = useAuctionHref();
  return (
    <section class="auction-view">
      {hasBack && (
        <p class="auction-back">
          <ViewLink href={href({ item: null, add: null })}>← All items</ViewLink>
        </p>
      )}
      <h2 ref={heading} tabIndex={-1} dir="auto">
        {title}
      </h2>
      {children}
    </section>
  );
}

/** Where others have bid more than who looks. */
function Outbid({ state }: { state: AuctionState }) {
  const href = useAuctionHref();
  const items = [...state.outbid]
    .map((id) => state.items?.get(id))
    .filter((item) => item !== undefined);
  return (
    <div role="alert" class="auction-outbid">
      {items.map(({ id, name, leading }) => (
        <p key={id} class="notice">
          You were outbid on{" "}
          <ViewLink href={href({ item: `${id}`, add: null })}>
            <bdi>{name}</bdi>
          </ViewLink>
          : <bdi>{leading?.bidder}</bdi> bids {formatMoney(leading?.amount_cents ?? 0)}.
        </p>
      ))}
    </div>
  );
}

function newsOf({ news }: AuctionState): string {
  const latest = news.at(-1);
  return latest === undefined ? "" : sentence(latest);
}

function sentence({ kind, item }: HouseMessage): string {
  switch (kind) {
    case "added":
      return `${item.owner} offers ${item.name}.`;
    case "removed":
      return `${item.owner} has removed ${item.name}.`;
    case "ended":
      return item.leading === null
        ? `Nobody has bid for ${item.name}.`
        : `${item.name} goes to ${item.leading.bidder} for ${formatMoney(item.leading.amount_cents)}.`;
    case "bid":
      return `${item.leading?.bidder} bids ${formatMoney(item.leading?.amount_cents ?? 0)} for ${item.name}.`;
  }
}
