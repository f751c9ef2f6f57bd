import type { Failure } from "../generated/console";
import { fetchWithPass } from "./pass";

/** What the server refused, or why it could not be asked: `code` says what, the message where and what to try. */
export class ApiError extends Error {
  override readonly name = "ApiError";
  /** A code of docs/codes.md; `unreachable` and `unreadable` are found here. */
  readonly code: string;
  /** Of the answer; 0 without one. */
  readonly status: number;
  /** The whole answer, as JSON: some refusals carry more than their code. */
  readonly answer: unknown;

  constructor(code: string, text: string, status = 0, answer: unknown = null) {
    super(text);
    this.code = code;
    this.status = status;
    this.answer = answer;
  }
}

export type Method = "GET" | "POST" | "DELETE";

/**
 * Asks this page's own server for JSON and trusts its shape, which the schema fixes for both sides.
 *
 * @param body What is posted; a GET has none.
 * @param headers Fields beside those of every request.
 * @throws ApiError, and the signal's reason when that ends the request
 */
export async function ask<T>(
  method: Method,
  path: string,
  body?: unknown,
  signal?: AbortSignal,
  headers: Readonly<Record<string, string>> = {},
): Promise<T> {
  const request: RequestInit = { method, signal: signal ?? null, headers };
  if (method !== "GET") {
    request.headers = { ...headers, "Content-Type": "application/json" };
    request.body = JSON.stringify(body ?? {});
  }
  let response: Response;
  let text: string;
  try {
    response = await fetchWithPass(path, request);
    text = await response.text();
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new ApiError("unreachable", `${path}: the server does not answer. Is it still running?`);
  }
  return readAnswer<T>(path, response.status, text);
}

/** @throws ApiError */
export function readAnswer<T>(path: string, status: number, text: string): T {
  let answer: unknown;
  try {
    answer = text === "" ? null : JSON.parse(text);
  } catch {
    const what = status < 400 ? "the answer is not JSON" : `it was refused with ${status}`;
    throw new ApiError("unreadable", `${path}: ${what}. Is something between here and the server?`);
  }
  if (status < 400) return answer as T;
  const { error, message } = (answer ?? {}) as { [field in keyof Failure]?: unknown };
  throw new ApiError(
    typeof error === "string" ? error : "unreadable",
    typeof message === "string" ? message : `${path}: refused with ${status}`,
    status,
    answer,
  );
}
