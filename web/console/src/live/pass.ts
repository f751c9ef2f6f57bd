/**
 * The pass of a console that requires one. The address that the program prints has it behind the `#`, which browsers
 * send to no server. This tab keeps it and adds it to each request: a cookie would go to every port of the host,
 * whoever listens there.
 */

const NAME = "pushlab.pass";
const IN_ADDRESS = /^#token=([0-9a-f]{32})$/;
/** Time for another tab to tell its pass, ms. */
const TOLD_WITHIN = 500;

let pass: string | null = null;
let tabs: BroadcastChannel | undefined;
let isTold: (() => void) | undefined;
/** The question to the other tabs that has no answer yet. */
let borrowing: Promise<boolean> | undefined;

/** Takes the pass from the address, from before a reload, or from another tab of this console. */
export function beginPass(): void {
  const [, given] = IN_ADDRESS.exec(location.hash) ?? [];
  if (given !== undefined) {
    keep(given);
    history.replaceState(history.state, "", location.pathname + location.search);
  } else {
    pass = recall();
  }
  // Only pages of this origin hear it, and an origin has a port.
  tabs = new BroadcastChannel(NAME);
  tabs.addEventListener("message", ({ data }) => {
    if (data === null && pass !== null) tabs?.postMessage(pass);
    if (typeof data !== "string" || data === pass || isTold === undefined) return;
    keep(data);
    isTold();
  });
  if (pass === null) borrow();
}

/** What a connection sends; nothing where no pass is known, since most servers ask for none. */
export function passOptions(): { getToken?: () => string } {
  return pass === null ? {} : { getToken: () => pass ?? "" };
}

/** `fetch` from this page's own server, with the pass. */
export async function fetchWithPass(path: string, init: RequestInit = {}): Promise<Response> {
  let sent = pass;
  const send = () => {
    sent = pass;
    const headers = new Headers(init.headers);
    if (pass !== null) headers.set("Authorization", `Bearer ${pass}`);
    return fetch(path, { ...init, headers, cache: "no-store" });
  };
  const response = await send();
  // The field tells it from a refusal by a demo, which has sessions of its own.
  const isForPass = response.status === 401 && response.headers.has("WWW-Authenticate");
  // Another tab may have told it meanwhile.
  return isForPass && (pass !== sent || (await borrow())) ? send() : response;
}

/** Asks the other tabs for their pass; whether one gave a different pass. */
function borrow(): Promise<boolean> {
  borrowing ??= new Promise((resolve) => {
    const end = (wasTold: boolean) => {
      clearTimeout(timer);
      isTold = undefined;
      borrowing = undefined;
      resolve(wasTold);
    };
    const timer = setTimeout(() => end(false), TOLD_WITHIN);
    isTold = () => end(true);
    tabs?.postMessage(null);
  });
  return borrowing;
}

function keep(text: string): void {
  pass = text;
  try {
    sessionStorage.setItem(NAME, text);
  } catch {
    // Forbidden: then it is good until the page is left.
  }
}

function recall(): string | null {
  try {
    return sessionStorage.getItem(NAME);
  } catch {
    return null;
  }
}
