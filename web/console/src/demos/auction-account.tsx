import type { RefObject } from "preact";
import { useState } from "preact/hooks";
import { ProblemNotice } from "../live/problem-notice";
import { isFocusLost, useFocusOn } from "../live/use-focus";
import { FieldProblem } from "./field-problem";
import { MAX_ACCOUNT_LENGTH, MAX_PASSWORD_LENGTH, MIN_PASSWORD_LENGTH } from "./interface";
import { useAttempt } from "./use-attempt";
import type { Auction } from "./use-auction";

type How = "log-in" | "register";

const WORDS = {
  "log-in": { button: "Log in", other: "I have no account yet", password: "current-password" },
  register: { button: "Register", other: "I have an account", password: "new-password" },
} as const;

/** Who is logged in, or how to. */
export function AuctionAccount({ auction }: { auction: Auction }) {
  const attempt = useAttempt();
  const { me, account } = auction;
  // Form and button go when they have done their work.
  const where = me === undefined ? null : me === null ? "out" : "in";
  const first = useFocusOn<HTMLInputElement & HTMLParagraphElement>(where, isFocusLost);
  if (me === undefined) {
    return (
      <div class="auction-account">
        <ProblemNotice
          title="Whether you are logged in is not known"
          problem={account.problem}
          retry={account.reload}
        />
      </div>
    );
  }
  if (me === null) return <AccountForm auction={auction} first={first} />;
  return (
    <div class="auction-account">
      <p ref={first} tabIndex={-1}>
        You are <bdi class="strong">{me}</bdi>.{" "}
        <button
          type="button"
          aria-disabled={attempt.isBusy}
          onClick={() => attempt.run(() => auction.logOut())}
        >
          Log out
        </button>
      </p>
      <FieldProblem problem={attempt.problem} />
    </div>
  );
}

interface AccountFormProps {
  auction: Auction;
  first: RefObject<HTMLInputElement | null>;
}

function AccountForm({ auction, first }: AccountFormProps) {
  const [how, setHow] = useState<How>("log-in");
  const [name, setName] = useState("");
  const [password, setPassword] = useState("");
  const attempt = useAttempt();
  const words = WORDS[how];
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    attempt.run(() => auction.enter(how, name.trim(), password));
  };
  const change = () => {
    setHow(how === "log-in" ? "register" : "log-in");
    attempt.clear();
  };
  return (
    <form class="auction-account" onSubmit={submit} aria-label={words.button}>
      {auction.isExpired && (
        <p class="notice" role="status">
          Your session has ended. Log in again; what you have typed is still there.
        </p>
      )}
      <div class="field-row">
        <label class="field">
          Name
          <input
            ref={first}
            type="text"
            name="name"
            required
            minLength={2}
            maxLength={MAX_ACCOUNT_LENGTH}
            autocomplete="username"
            autocapitalize="off"
            spellcheck={false}
            value={name}
            aria-describedby="account-problem account-rule"
            onInput={({ currentTarget }) => setName(currentTarget.value)}
          />
        </label>
        <label class="field">
          Password
          <input
            type="password"
            name="password"
            required
            minLength={how === "register" ? MIN_PASSWORD_LENGTH : undefined}
            maxLength={MAX_PASSWORD_LENGTH}
            autocomplete={words.password}
            value={password}
            aria-describedby="account-problem account-rule"
            onInput={({ currentTarget }) => setPassword(currentTarget.value)}
          />
        </label>
        <button type="submit" class="primary" aria-disabled={attempt.isBusy}>
          {words.button}
        </button>
        <button type="button" class="plain" onClick={change}>
          {words.other}
        </button>
      </div>
      <FieldProblem id="account-problem" problem={attempt.problem} />
      <p class="note" id="account-rule">
        {how === "register"
          ? `A name of 2 to ${MAX_ACCOUNT_LENGTH} letters, digits, hyphens or underscores; a password of ${MIN_PASSWORD_LENGTH} characters or more, which you use nowhere else.`
          : "Who is logged in offers things and bids; everybody can look."}
      </p>
    </form>
  );
}
