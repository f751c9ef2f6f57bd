const KEY = "pushlab.auction.session";

/** Used where storage is forbidden. */
let unstored: string | null = null;

/**
 * The field that says who is logged in, in any tab of this origin: a cookie would go to every port of the host, whoever
 * listens there.
 */
export function sessionFields(): Record<string, string> {
  const session = recall();
  return session === null ? {} : { "Auction-Session": session };
}

/** Keeps a session; null ends it. */
export function keepSession(session: string | null): void {
  unstored = session;
  try {
    if (session === null) localStorage.removeItem(KEY);
    else localStorage.setItem(KEY, session);
  } catch {
    // Forbidden: then it is good until the page is left.
  }
}

function recall(): string | null {
  try {
    return localStorage.getItem(KEY);
  } catch {
    return unstored;
  }
}
