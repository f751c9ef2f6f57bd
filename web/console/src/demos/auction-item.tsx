import { useEffect, useRef, useState } from "preact/hooks";
import { step } from "../console/router";
import { formatCount, plural } from "../format/number";
import type { ApiError } from "../live/http-api";
import { ProblemNotice } from "../live/problem-notice";
import { useFocusOn } from "../live/use-focus";
import { type Resource, useResource } from "../live/use-resource";
import { Marks, Price, TimeLeft, useAuctionHref } from "./auction-list";
import { isOver, leastBid } from "./auction-state";
import { FieldProblem } from "./field-problem";
import type { Item, ItemDetail, Outbid } from "./interface";
import { formatMoney, moneyText, parseMoney, quickBids } from "./money";
import { useAttempt } from "./use-attempt";
import { AUCTION, type Auction } from "./use-auction";
import { useNow } from "./use-now";

/** Least time between two looks at the history, ms: bids may come faster. */
const HISTORY_MS = 500;
const CLOCK = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "medium" });

/** An item, its bids, and how to bid. */
export function AuctionItem({ auction, item }: { auction: Auction; item: Item }) {
  const { state } = auction;
  const now = useNow(1000);
  const me = auction.me ?? null;
  const { id, description, owner, version } = item;
  const isFresh = state.news.some((news) => news.item.id === id && news.item.version === version);
  return (
    <div class="auction-item">
      <p class="auction-whose">
        offered by <bdi>{owner}</bdi>{" "}
        <Marks item={item} me={me} now={now} isOutbid={state.outbid.has(id)} />
      </p>
      <p class="auction-description" dir="auto">
        {description || "No description"}
      </p>
      <div class="auction-now">
        <Price key={version} item={item} isFresh={isFresh} />
        <TimeLeft item={item} now={now} />
      </div>
      {isOver(item, now) ? (
        <Outcome item={item} />
      ) : (
        <BidForm auction={auction} item={item} me={me} />
      )}
      {owner === me && <Remove auction={auction} item={item} />}
      <History item={item} me={me} />
    </div>
  );
}

function Outcome({ item: { leading } }: { item: Item }) {
  if (leading === null) return <p>Nobody has bid.</p>;
  return (
    <p>
      Sold to <bdi class="strong">{leading.bidder}</bdi> for {formatMoney(leading.amount_cents)}.
    </p>
  );
}

interface BidFormProps {
  auction: Auction;
  item: Item;
  me: string | null;
}

function BidForm({ auction, item, me }: BidFormProps) {
  const least = leastBid(item);
  const [text, setText] = useState("");
  const [wrong, setWrong] = useState<string | null>(null);
  const [done, setDone] = useState("");
  const attempt = useAttempt();
  const field = useRef<HTMLInputElement>(null);
  const fill = (value: string) => {
    setText(value);
    setWrong(null);
    setDone("");
    attempt.clear();
  };
  const submit = async (event: SubmitEvent) => {
    event.preventDefault();
    const amount_cents = parseMoney(text);
    setDone("");
    if (amount_cents === undefined) {
      setWrong("This is no amount. Write it as 12 or 12.50.");
    } else if (amount_cents < least) {
      setWrong(`The next bid must be ${formatMoney(least)} or more.`);
    } else {
      setWrong(null);
      if (await attempt.run(() => auction.bid(item.id, amount_cents))) {
        setText("");
        setDone(`You lead with ${formatMoney(amount_cents)}.`);
      }
    }
    field.current?.focus();
  };
  if (me === null) return <p class="notice">Log in to bid.</p>;
  return (
    <form class="auction-bid" onSubmit={submit}>
      <label for="bid-amount">Your bid, €</label>
      <div class="field-row">
        <input
          id="bid-amount"
          ref={field}
          type="text"
          inputmode="decimal"
          autocomplete="off"
          placeholder={moneyText(least)}
          value={text}
          aria-invalid={wrong !== null || attempt.problem !== null}
          aria-describedby="bid-problem bid-least"
          onInput={({ currentTarget }) => fill(currentTarget.value)}
        />
        <button type="submit" class="primary" aria-disabled={attempt.isBusy}>
          Bid
        </button>
        <fieldset class="auction-quick">
          <legend class="visually-hidden">Fill in</legend>
          {quickBids(least).map((cents, index) => (
            // By place and not by amount: a button must not leave from under a pointer.
            <button key={index} type="button" onClick={() => fill(moneyText(cents))}>
              {formatMoney(cents)}
            </button>
          ))}
        </fieldset>
      </div>
      <p class="note" id="bid-least">
        {formatMoney(least)} or more.
      </p>
      <FieldProblem id="bid-problem" problem={wrong ?? problemOf(attempt.problem)} />
      <p class="auction-done" role="status">
        {done !== "" && item.leading?.bidder === me ? done : ""}
      </p>
    </form>
  );
}

/** Who was outbid at the last moment is told by whom. */
function problemOf(problem: ApiError | null): ApiError | string | null {
  if (problem?.code !== "outbid") return problem;
  const { leading, least_cents } = problem.answer as Outbid;
  const words = leading && `${leading.bidder} leads with ${formatMoney(leading.amount_cents)}. `;
  return `${words ?? ""}Bid ${formatMoney(least_cents)} or more.`;
}

function Remove({ auction, item }: Omit<BidFormProps, "me">) {
  const [isAsking, setAsking] = useState(false);
  const attempt = useAttempt();
  const href = useAuctionHref();
  // The button that was pressed is gone.
  const latest = useFocusOn<HTMLButtonElement>(isAsking ? "sure?" : "");
  const remove = async () => {
    const back = href({ item: null });
    if (await attempt.run(() => auction.remove(item.id))) step(back);
  };
  return (
    <div class="auction-remove">
      {isAsking ? (
        <>
          <span id="remove-question">Remove it, with its {plural(item.bids, "bid")}?</span>{" "}
          <button type="button" aria-disabled={attempt.isBusy} onClick={remove}>
            Yes, remove it
          </button>{" "}
          <button
            type="button"
            ref={latest}
            aria-describedby="remove-question"
            onClick={() => setAsking(false)}
          >
            No
          </button>
        </>
      ) : (
        <button type="button" ref={latest} onClick={() => setAsking(true)}>
          Remove this item
        </button>
      )}
      <FieldProblem problem={attempt.problem} />
    </div>
  );
}

function History({ item, me }: { item: Item; me: string | null }) {
  const detail = useResource<ItemDetail>(`${AUCTION}/items/${item.id}`);
  useRefreshed(detail, item.version);
  const history = detail.data?.history ?? [];
  return (
    <div class="auction-history">
      <h3>
        Bids <span class="note">{formatCount(item.bids)}</span>
      </h3>
      <ProblemNotice
        title="The bids cannot be loaded"
        problem={detail.problem}
        retry={detail.reload}
      />
      {history.length > 0 && (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, and must for who has no pointer
        <section class="auction-bids" tabIndex={0} aria-label="History of bids">
          <table class="data">
            <thead>
              <tr>
                <th scope="col" class="number">
                  No.
                </th>
                <th scope="col">Bidder</th>
                <th scope="col" class="number">
                  Bid
                </th>
                <th scope="col">When</th>
              </tr>
            </thead>
            <tbody>
              {history.map(({ number, bidder, amount_cents, at_ms }) => (
                <tr key={number}>
                  <td class="number">{number}</td>
                  <td>
                    <bdi class={bidder === me ? "strong" : ""}>{bidder}</bdi>
                  </td>
                  <td class="number">{formatMoney(amount_cents)}</td>
                  <td>
                    <time dateTime={new Date(at_ms).toISOString()}>{CLOCK.format(at_ms)}</time>
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </section>
      )}
    </div>
  );
}

/** Asks again when the item has changed, not more often than the server should bear. */
function useRefreshed({ reload }: Resource<ItemDetail>, version: number): void {
  const seen = useRef(version);
  const askedAt = useRef(0);
  useEffect(() => {
    if (seen.current === version) return;
    const ask = () => {
      seen.current = version;
      askedAt.current = performance.now();
      reload();
    };
    const wait = askedAt.current + HISTORY_MS - performance.now();
    const timer = setTimeout(ask, Math.max(0, wait));
    return () => clearTimeout(timer);
  }, [version, reload]);
}
