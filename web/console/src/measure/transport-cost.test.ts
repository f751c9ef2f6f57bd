import { expect, test } from "vitest";
import { countingFetch, countingWebSocket, frameBytes } from "./transport-cost";

test("a frame is its text, a head that grows with it, and a mask in what browsers send", () => {
  expect(frameBytes(0, false)).toBe(2);
  expect(frameBytes(125, false)).toBe(127);
  expect(frameBytes(126, false)).toBe(130);
  expect(frameBytes(65_535, false)).toBe(65_539);
  expect(frameBytes(65_536, false)).toBe(65_546);
  expect(frameBytes(5, true)).toBe(11);
});

test("sockets count their upgrades and the bytes of their texts as UTF-8", () => {
  class Fake extends EventTarget {
    readonly sent: string[] = [];
    send(text: string) {
      this.sent.push(text);
    }
  }
  const count = { upgrades: 0, sent: 0, received: 0 };
  const Counting = countingWebSocket(count, Fake as unknown as typeof WebSocket);
  const socket = new Counting("ws://host/");
  socket.send("ä😀");
  socket.dispatchEvent(Object.assign(new Event("message"), { data: '["pong",1]' }));
  expect(count).toEqual({ upgrades: 1, sent: 6 + 6, received: 12 });
  expect((socket as unknown as Fake).sent).toEqual(["ä😀"]);
});

test("of streams the bytes are counted as they come, and nothing of them changes", async () => {
  let bytes = 0;
  const answer = (url: string) => {
    const response = new Response("äbc", { headers: { "content-type": "text/event-stream" } });
    return Object.defineProperty(response, "url", { value: url });
  };
  const counting = countingFetch(
    (came) => {
      bytes += came;
    },
    async (url) => answer(`${url}`),
  );
  const stream = await counting("http://host/sse?channel=a");
  expect(stream.headers.get("content-type")).toBe("text/event-stream");
  expect(await stream.text()).toBe("äbc");
  expect(bytes).toBe(4);
  expect(await (await counting("http://host/poll")).text()).toBe("äbc");
  expect(bytes).toBe(4);
});
