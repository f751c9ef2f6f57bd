import { useState } from "preact/hooks";
import { step } from "../console/router";
import { useAuctionHref } from "./auction-list";
import { FieldProblem } from "./field-problem";
import { MAX_DESCRIPTION_LENGTH, MAX_ITEM_NAME_LENGTH } from "./interface";
import { parseMoney } from "./money";
import { formatDuration } from "./time-left";
import { useAttempt } from "./use-attempt";
import type { Auction } from "./use-auction";
import { ViewLink } from "./view-link";

const MINUTE = 60_000;
/** How long an auction may last, ms. */
const DURATIONS = [1, 5, 30, 60, 6 * 60, 24 * 60, 7 * 24 * 60].map((minutes) => minutes * MINUTE);
/** What is chosen before anybody does. */
const USUAL = 5 * MINUTE;

/** Where one offers something. */
export function AuctionOffer({ auction }: { auction: Auction }) {
  const [name, setName] = useState("");
  const [description, setDescription] = useState("");
  const [minimum, setMinimum] = useState("1.00");
  const [duration, setDuration] = useState(USUAL);
  const [wrong, setWrong] = useState<string | null>(null);
  const attempt = useAttempt();
  const href = useAuctionHref();
  const submit = async (event: SubmitEvent) => {
    event.preventDefault();
    const minimum_cents = parseMoney(minimum);
    if (!minimum_cents) {
      setWrong("This is no amount above nothing. Write it as 12 or 12.50.");
      return;
    }
    setWrong(null);
    let added = 0;
    const offer = { name: name.trim(), description: description.trim(), minimum_cents };
    const isDone = await attempt.run(async () => {
      added = (await auction.add({ ...offer, expires_ms: Date.now() + duration })).id;
    });
    if (isDone) step(href({ add: null, item: `${added}` }));
  };
  return (
    <form class="auction-offer" onSubmit={submit}>
      <label class="field">
        Name
        <input
          type="text"
          required
          maxLength={MAX_ITEM_NAME_LENGTH}
          value={name}
          autocomplete="off"
          onInput={({ currentTarget }) => setName(currentTarget.value)}
        />
      </label>
      <label class="field">
        Description
        <textarea
          rows={4}
          maxLength={MAX_DESCRIPTION_LENGTH}
          value={description}
          onInput={({ currentTarget }) => setDescription(currentTarget.value)}
        />
      </label>
      <div class="field">
        <label for="offer-minimum">Minimum price, €</label>
        <input
          id="offer-minimum"
          type="text"
          inputmode="decimal"
          required
          value={minimum}
          autocomplete="off"
          aria-invalid={wrong !== null}
          aria-describedby="offer-minimum-problem"
          onInput={({ currentTarget }) => setMinimum(currentTarget.value)}
        />
        <FieldProblem id="offer-minimum-problem" problem={wrong} />
      </div>
      <label class="field">
        The auction lasts
        <select
          value={duration}
          onChange={({ currentTarget }) => setDuration(Number(currentTarget.value))}
        >
          {DURATIONS.map((one) => (
            <option key={one} value={one}>
              {formatDuration(one)}
            </option>
          ))}
        </select>
      </label>
      <div class="field-row">
        <button type="submit" class="primary" aria-disabled={attempt.isBusy}>
          Offer it
        </button>
        <ViewLink class="button" href={href({ add: null })}>
          Cancel
        </ViewLink>
      </div>
      <FieldProblem problem={attempt.problem} />
    </form>
  );
}
