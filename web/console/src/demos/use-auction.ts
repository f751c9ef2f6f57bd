import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { ask, type Method } from "../live/http-api";
import { useTransport } from "../live/transport-select";
import { type LiveConnection, useConnection } from "../live/use-connection";
import { asApiError, type Resource, useResource } from "../live/use-resource";
import { keepSession, sessionFields } from "./auction-session";
import { type AuctionState, EMPTY_AUCTION, reduceAuction } from "./auction-state";
import { type Account, type Item, type ItemsSnapshot, readHouseMessage } from "./interface";
import { useReduced } from "./use-reduced";

/** Below which the auction house answers. */
export const AUCTION = "/api/demos/auction";
const CHANNELS = ["demo.auction"];

/** What somebody offers. */
export interface Offer {
  name: string;
  description: string;
  minimum_cents: number;
  expires_ms: number;
}

/** Answer of `POST log-in` and `POST register`. */
interface Entered {
  name: string;
  session: string;
}

/** The auction house as one sees it. Functions that ask the server throw an `ApiError`. */
export interface Auction {
  state: AuctionState;
  live: LiveConnection;
  snapshot: Resource<ItemsSnapshot>;
  account: Resource<Account>;
  /** Who is logged in: null for nobody, undefined while that is not known. */
  me: string | null | undefined;
  /** Why one is no longer logged in. */
  isExpired: boolean;
  enter: (how: "log-in" | "register", name: string, password: string) => Promise<void>;
  logOut: () => Promise<void>;
  add: (offer: Offer) => Promise<Item>;
  remove: (id: number) => Promise<void>;
  bid: (id: number, amount_cents: number) => Promise<void>;
}

/** Follows the auction house for as long as the page is there. */
export function useAuction(): Auction {
  const snapshot = useResource<ItemsSnapshot>(`${AUCTION}/items`);
  const account = useResource<Account>(`${AUCTION}/me`, sessionFields);
  const [state, dispatch] = useReduced(reduceAuction, EMPTY_AUCTION);
  const [known, setKnown] = useState<string | null | undefined>(undefined);
  const [isExpired, setExpired] = useState(false);
  const transport = useTransport();

  const me = known === undefined ? account.data?.name : known;
  const who = useRef<string | null>(null);
  who.current = me ?? null;
  /** Who was logged in when the account was asked for again; undefined where it was not. */
  const askedAs = useRef<string | null>(undefined);

  const after = snapshot.data?.cursor ?? undefined;
  const plan = snapshot.data && { channels: CHANNELS, transport, after };
  const live = useConnection(plan, {
    message: ({ cursor, data }) => {
      const message = readHouseMessage(data);
      if (message === "reload") snapshot.reload();
      else if (message !== null) dispatch({ kind: "message", cursor, message, me: who.current });
    },
    gap: () => {
      snapshot.reload();
      // The server may be another one, which knows nothing of the session.
      setKnown(me);
      askedAs.current = who.current;
      account.reload();
    },
  });
  const { data } = snapshot;
  useEffect(() => {
    if (data !== null) dispatch({ kind: "snapshot", ...data, me: who.current });
  }, [data, dispatch]);

  const become = useCallback(
    (name: string | null) => {
      setKnown(name);
      setExpired(false);
      dispatch({ kind: "account" });
    },
    [dispatch],
  );

  useEffect(() => {
    // Who has logged in meanwhile knows better.
    if (account.data === null || askedAs.current !== who.current) return;
    const { name } = account.data;
    if (name === who.current) return;
    become(name);
    setExpired(name === null);
  }, [account.data, become]);

  const act = async <T>(method: Method, path: string, body?: object): Promise<T> => {
    try {
      return await ask<T>(method, `${AUCTION}/${path}`, body, undefined, sessionFields());
    } catch (error) {
      const problem = asApiError(error);
      // The session is over: what is shown needs no account, and what was typed stays.
      if (problem.code === "unauthorized" && who.current !== null) {
        become(null);
        setExpired(true);
      }
      throw problem;
    }
  };

  return {
    state,
    live,
    snapshot,
    account,
    me,
    isExpired,
    enter: async (how, name, password) => {
      const entered = await act<Entered>("POST", how, { name, password });
      keepSession(entered.session);
      become(entered.name);
    },
    logOut: async () => {
      await act("POST", "log-out");
      keepSession(null);
      become(null);
    },
    add: async (offer) => {
      const { item } = await act<{ item: Item }>("POST", "items", offer);
      dispatch({ kind: "item", item, me: who.current });
      return item;
    },
    remove: async (id) => {
      await act("DELETE", `items/${id}`);
      dispatch({ kind: "gone", id });
    },
    bid: async (id, amount_cents) => {
      const { item } = await act<{ item: Item }>("POST", `items/${id}/bids`, { amount_cents });
      dispatch({ kind: "item", item, me: who.current });
    },
  };
}
