import { expect, test } from "vitest";
import { axisHeading, lowerFirst, placeText } from "./place";

const clients = { name: "clients", title: "Clients", unit: "", is_logarithmic: false };
const payload = { name: "payload_bytes", title: "Payload", unit: "B", is_logarithmic: true };

test("a place reads within a sentence", () => {
  expect(placeText(clients, 1)).toBe("1 client");
  expect(placeText(clients, 300)).toBe("300 clients");
  expect(placeText(payload, 30)).toBe("payload 30\u202fB");
});

test("a heading has its unit", () => {
  expect(axisHeading(clients)).toBe("Clients");
  expect(axisHeading(payload)).toBe("Payload, B");
});

test("an abbreviation keeps its capitals", () => {
  expect(["CPU", "Payload", ""].map(lowerFirst)).toEqual(["CPU", "payload", ""]);
});
