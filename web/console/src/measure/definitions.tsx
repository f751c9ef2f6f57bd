/** What the numbers mean, and what no page can know. */
export function Definitions() {
  return (
    <details>
      <summary>How this is measured</summary>
      <dl class="definitions">
        <dt>Opens in</dt>
        <dd>From the first attempt until the server’s first word. The server greets at once.</dd>
        <dt>Message</dt>
        <dd>
          Each message is published to a channel of this page’s own, a random one, ten times a
          second, or more slowly where an echo takes longer than that. Its latency is the time from
          publishing until it is back here. Polling asks once a second, so messages wait for half a
          second on average.
        </dd>
        <dt>Jitter</dt>
        <dd>
          The mean absolute difference between the latency of one message and that of the next: what
          RFC 3550 estimates, without its smoothing.
        </dd>
        <dt>Echo</dt>
        <dd>
          The round trip of a small text, one after another: over the WebSocket, or by POST for all
          the others.
        </dd>
        <dt>Held back</dt>
        <dd>
          The greeting of a stream does not come within 5 s, messages never come, or they come in
          clumps: on average three or more at once, although they were sent one by one. Something on
          the way collects them before it passes them on.
        </dd>
        <dt>Requests, received, sent</dt>
        <dd>
          Each echo and each posted message is a request. HTTP is counted by the browser’s Resource
          Timing, with its estimate for response headers; it tells neither what was sent nor how
          much of a stream had arrived when this page ended it, so the page counts these itself. It
          tells nothing at all about WebSockets: their upgrade, and the bytes of their frames in
          both directions, are counted by this page too. No page sees TLS, TCP or IP.
        </dd>
        <dt>Precision</dt>
        <dd>Browsers round times, to 0.1 ms or to 1 ms.</dd>
      </dl>
    </details>
  );
}
