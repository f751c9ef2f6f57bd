import { expect, test } from "vitest";
import { ApiError, readAnswer } from "./http-api";

function refusal(status: number, text: string): ApiError {
  try {
    readAnswer("/api/x", status, text);
  } catch (error) {
    if (error instanceof ApiError) return error;
  }
  throw new Error("it was accepted");
}

test("an answer is its JSON, and nothing is nothing", () => {
  expect(readAnswer("/api/x", 200, '{"a":1}')).toEqual({ a: 1 });
  expect(readAnswer("/api/x", 202, "")).toBeNull();
});

test("a refusal has its code, its message and the rest of the answer", () => {
  const error = refusal(409, '{"error":"outbid","message":"900 is bid","leading":900}');
  expect([error.code, error.message, error.status]).toEqual(["outbid", "900 is bid", 409]);
  expect(error.answer).toMatchObject({ leading: 900 });
});

test.each([
  [502, "<html>Bad Gateway</html>"],
  [200, "<html>log in</html>"],
  [500, "null"],
  [404, "{}"],
])("%d with %s comes from something in between", (status, text) => {
  expect(refusal(status, text).code).toBe("unreadable");
});
