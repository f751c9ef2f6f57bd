import { expect, test } from "vitest";
import { choicesOf, DEFAULT_OPTIONS, readOptions, TRANSPORTS } from "./options";

const read = (query: string) => readOptions(new URLSearchParams(query));

test("defaults leave the address alone", () => {
  expect(read("")).toEqual(DEFAULT_OPTIONS);
  expect(choicesOf(DEFAULT_OPTIONS)).toEqual({ transports: null, messages: null });
});

test("options survive the address, in the order of preference", () => {
  const options = read("messages=50&transports=polling,sse");
  expect(options).toEqual({ transports: ["sse", "polling"], messages: 50 });
  expect(choicesOf(options)).toEqual({ transports: "sse,polling", messages: "50" });
});

test("what is no option is left out", () => {
  expect(read("transports=pigeon,sse,sse&messages=7")).toEqual({
    transports: ["sse"],
    messages: 20,
  });
  expect(read("transports=&messages=1e9")).toEqual(DEFAULT_OPTIONS);
  expect(read("transports=pigeon").transports).toEqual(TRANSPORTS);
});
