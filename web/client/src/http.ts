import { PushlabError } from "./errors.ts";
import { badFrame, MAX_TEXT_LENGTH } from "./frames.ts";
import type { Environment } from "./link.ts";
import { readRetryAfter } from "./timing.ts";

/**
 * Hands on the text of a body as it comes.
 *
 * @throws PushlabError `bad-frame` where it is not UTF-8; what `take` throws; what the network throws.
 */
export async function readBody(response: Response, take: (text: string) => void): Promise<void> {
  const reader = response.body?.getReader();
  const decoder = new TextDecoder("utf-8", { fatal: true });
  const decode = (bytes?: Uint8Array) => {
    try {
      return decoder.decode(bytes, { stream: bytes !== undefined });
    } catch {
      throw badFrame("not UTF-8");
    }
  };
  try {
    for (;;) {
      const { value, done } = (await reader?.read()) ?? { done: true };
      take(decode(value));
      if (done) return;
    }
  } finally {
    // What is left unread would keep the connection.
    reader?.cancel().catch(() => {});
  }
}

/** The whole body, at most `MAX_TEXT_LENGTH`. Throws what `readBody` throws. */
export async function readText(response: Response): Promise<string> {
  let whole = "";
  await readBody(response, (text) => {
    whole += text;
    if (whole.length > MAX_TEXT_LENGTH) throw badFrame("a body without an end");
  });
  return whole;
}

/**
 * Sends a request; gives an answer of status 200 and the type named.
 *
 * @throws PushlabError with the server's code, or `refused` where something else answered; what `fetch` throws.
 */
export async function ask(
  { fetch, tokens }: Environment,
  address: string,
  type: string,
  init: RequestInit & { headers?: Record<string, string> },
): Promise<Response> {
  const token = tokens?.token;
  const headers = { ...init.headers, ...(token && { authorization: `Bearer ${token}` }) };
  const response = await fetch(address, { ...init, headers, cache: "no-store" });
  const found = response.headers.get("content-type") ?? "";
  if (response.status === 200 && found.toLowerCase().split(/\s*;/)[0] === type) return response;
  const { status } = response;
  const retryAfter = readRetryAfter(response.headers.get("retry-after"));
  let code = status === 429 || status === 503 ? "overloaded" : "refused";
  let returnAfter: number | undefined;
  let text = `${address.split("?")[0]}: status ${status}, ${found || "no type"}`;
  try {
    const body = JSON.parse(await readText(response));
    if (typeof body?.error === "string" && typeof body.message === "string") {
      code = body.error;
      text = body.message;
      if (typeof body.after_ms === "number") returnAfter = body.after_ms;
    }
  } catch {
    // It is no answer of the server: the status says all.
  }
  throw new PushlabError(code, text, retryAfter, returnAfter);
}

/**
 * Posts and gives the answer's text.
 *
 * @throws PushlabError with the server's code, `refused`, `timeout` or `unreachable`
 */
export async function post(
  environment: Environment,
  address: string,
  body: string,
  signal: AbortSignal,
): Promise<string> {
  const type = "application/json";
  const init = { method: "POST", headers: { "content-type": type }, body, signal };
  try {
    return await readText(await ask(environment, address, type, init));
  } catch (error) {
    if (signal.aborted) throw signal.reason;
    throw error instanceof PushlabError ? error : new PushlabError("unreachable", `${error}`);
  }
}
