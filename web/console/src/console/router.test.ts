import { describe, expect, test } from "vitest";
import {
  changeQuery,
  hrefOf,
  innerTarget,
  type LinkClick,
  nextPlace,
  type Place,
  pathOf,
} from "./router";

test.each([
  ["/", "/"],
  ["/live", "/live"],
  ["/live/", "/live"],
  ["//", "/"],
])("%s is the page %s", (pathname, path) => {
  expect(pathOf({ pathname })).toBe(path);
});

describe("nextPlace", () => {
  const next = (before: Place | null, href: string, state: unknown) =>
    nextPlace(before, new URL(href, "http://localhost:8080"), state);
  const first = next(null, "/new?name=a%20b", { visit: 5 });

  test("has the page, its choices and the visit", () => {
    expect([first.path, first.query.get("name"), first.visit]).toEqual(["/new", "a b", 5]);
  });

  test("a link to the same page is another visit", () => {
    expect(next(first, "/new?name=a+b", { visit: 6 }).visit).toBe(6);
  });

  test("a jump within the page is not", () => {
    expect(next(first, "/new?name=a+b#content", null).visit).toBe(5);
    expect(next(first, "/live", null).visit).toBe(0);
  });
});

describe("changeQuery", () => {
  test("null removes, everything else stays", () => {
    const query = new URLSearchParams("a=1&b=2");
    expect(changeQuery(query, { a: null, c: "" }).toString()).toBe("b=2&c=");
    expect(query.toString()).toBe("a=1&b=2");
  });

  test("an address without choices has no question mark", () => {
    expect(hrefOf("/", { text: null })).toBe("/");
    expect(hrefOf("/compare", { baseline: "1", candidate: null })).toBe("/compare?baseline=1");
  });
});

describe("innerTarget", () => {
  const here = "http://localhost:8080/demos?x=1";
  const isPage = (path: string) => ["/", "/live", "/demos"].includes(path);
  const follow = (href: string, changes: Partial<LinkClick> & { target?: string } = {}) => {
    const { target = "", ...click } = changes;
    const link = { href, target, download: false };
    const plain = { button: 0, defaultPrevented: false, hasModifier: false, link };
    return innerTarget({ ...plain, ...click }, here, isPage);
  };

  test.each([
    ["/live", "/live"],
    ["http://localhost:8080/?state=running#list", "/?state=running#list"],
    ["/demos", "/demos"],
    ["/demos?x=1", "/demos?x=1"],
  ])("%s stays within the console", (href, target) => {
    expect(follow(href)).toBe(target);
  });

  test.each([
    "/reports/3",
    "https://localhost:8080/live",
    "http://elsewhere.example/live",
    "/demos?x=1#content",
    "data:text/plain,x",
    "mailto:a@b.example",
  ])("%s is left to the browser", (href) => {
    expect(follow(href)).toBeNull();
  });

  test("so are clicks that ask for something else than to go there", () => {
    expect(follow("/live", { button: 1 })).toBeNull();
    expect(follow("/live", { hasModifier: true })).toBeNull();
    expect(follow("/live", { defaultPrevented: true })).toBeNull();
    expect(follow("/live", { target: "_blank" })).toBeNull();
    expect(follow("/live", { link: { href: "/live", target: "", download: true } })).toBeNull();
  });
});
