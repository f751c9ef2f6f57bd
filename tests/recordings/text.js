// A conversation as text, in the format that crates/server/tests/recordings/README.md describes.

const UPGRADED = "HTTP/1.1 101 ";
/** Answers whose bodies are counters and clocks. */
const COUNTERS = /^(GET|HEAD) \/(stats|metrics)[ ?]/;
const MARK = /!([A-Za-z0-9_-]{9})!/g;

/**
 * `notes` are the lines of the head; `events` are `{ kind, id, bytes }` in their order, of kinds `opens`, `client`,
 * `server`, `client ends`, `server ends` and `stop`. `epoch` is the server's, `hasMarks` whether it marked receipts.
 */
export function write({ notes, events, epoch, hasMarks }) {
  const lines = [...notes];
  const connections = new Map();
  const show = (bytes) => escaped(bytes, epoch);
  for (const { kind, id, bytes } of inTurns(events)) {
    if (!connections.has(id)) connections.set(id, { isUpgraded: false, hasCounters: false });
    const connection = connections.get(id);
    if (!kind.startsWith("server")) lines.push("");
    if (kind === "client") {
      connection.hasCounters = COUNTERS.test(bytes.toString("latin1"));
      lines.push(...clientLines(connection, bytes, show).map((line) => id + line));
    } else if (kind === "server") {
      const all = connection.hasCounters
        ? counterLines(bytes, show)
        : serverLines(connection, bytes, show);
      lines.push(
        ...all.map((line) => id + (hasMarks ? line.replace(MARK, "!\\{receipt}!") : line)),
      );
    } else {
      lines.push(kind === "stop" ? "stop" : `${id} ${kind}`);
    }
  }
  return `${lines.join("\n")}\n`;
}

function clientLines({ isUpgraded }, bytes, show) {
  const frames = isUpgraded ? clientFrames(bytes, show) : undefined;
  return frames ?? split(bytes).map((line) => said(">", show(line)));
}

function serverLines(connection, bytes, show) {
  const pieces = [];
  let rest = bytes;
  if (!connection.isUpgraded && bytes.toString("latin1").startsWith(UPGRADED)) {
    connection.isUpgraded = true;
    const head = bytes.indexOf("\r\n\r\n") + 4;
    pieces.push(...split(bytes.subarray(0, head)));
    rest = bytes.subarray(head);
  }
  pieces.push(...(connection.isUpgraded ? frames(rest) : split(rest)));
  return pieces.map((piece) => said("<", show(piece)));
}

/** An answer whose body, and its length, differ from time to time. */
function counterLines(bytes, show) {
  const end = bytes.indexOf("\r\n\r\n") + 4;
  const lines = split(bytes.subarray(0, end)).map((line) =>
    said("<", show(line).replace(/^(Content-Length: )\d+/, "$1\\{length}")),
  );
  return end < bytes.length ? [...lines, "<< \\{body}"] : lines;
}

/**
 * What servers say between two turns, by connection: in which order it came from several is chance. Connections on
 * which nothing was said at all, such as a browser opens in advance, are left out.
 */
function inTurns(events) {
  const spoken = new Set(events.filter(({ bytes }) => bytes?.length > 0).map(({ id }) => id));
  const kept = events.filter(({ kind, id }) => kind === "stop" || spoken.has(id));
  const numbers = new Map(
    [...new Set(kept.map(({ id }) => id))].filter(Boolean).map((id, at) => [id, at + 1]),
  );
  const turns = [];
  let answers = new Map();
  const flush = () => {
    for (const [id, { bytes, hasEnded }] of [...answers].sort(([a], [b]) => a - b)) {
      if (bytes.length > 0) turns.push({ kind: "server", id, bytes: Buffer.concat(bytes) });
      if (hasEnded) turns.push({ kind: "server ends", id });
    }
    answers = new Map();
  };
  for (const { kind, id: original, bytes } of kept) {
    const id = numbers.get(original);
    if (kind === "server" || kind === "server ends") {
      const answer = answers.get(id) ?? { bytes: [], hasEnded: false };
      if (kind === "server") answer.bytes.push(bytes);
      else answer.hasEnded = true;
      answers.set(id, answer);
    } else {
      flush();
      turns.push({ kind, id, bytes });
    }
  }
  flush();
  return turns;
}

/** The sign alone says that the line ends as those of HTTP do, twice that it is all there is. */
function said(sign, text) {
  // A backslash of the text's own is escaped by another.
  if (!/(?<!\\)(\\\\)*\\r\\n$/.test(text)) return `${sign}${sign} ${text}`;
  return `${sign} ${text.slice(0, -4).replace(/ $/, "\\x20")}`.trimEnd();
}

/** Behind each line feed. */
function split(bytes) {
  const pieces = [];
  for (let at = 0; at < bytes.length; ) {
    const end = bytes.indexOf(10, at);
    const next = end < 0 ? bytes.length : end + 1;
    pieces.push(bytes.subarray(at, next));
    at = next;
  }
  return pieces;
}

/** Sizes of a frame's head, without a mask's key, and of its payload; undefined if that is not all there. */
function sizes(bytes) {
  if (bytes.length < 2) return undefined;
  const short = bytes[1] & 127;
  const head = { 126: 4, 127: 10 }[short] ?? 2;
  if (bytes.length < head) return undefined;
  const payload = { 126: () => bytes.readUInt16BE(2), 127: () => Number(bytes.readBigUInt64BE(2)) };
  return { head, payload: payload[short]?.() ?? short };
}

/** One piece for each frame of a server. */
function frames(bytes) {
  const pieces = [];
  for (let rest = bytes; rest.length > 0; ) {
    const size = sizes(rest);
    const all = size ? size.head + size.payload : rest.length;
    pieces.push(rest.subarray(0, all));
    rest = rest.subarray(all);
  }
  return pieces;
}

/** Lines of frames with a mask, unmasked; undefined if these are not whole frames, or their masks are zero. */
function clientFrames(bytes, show) {
  const lines = [];
  for (let rest = bytes; rest.length > 0; ) {
    const size = sizes(rest);
    if (size === undefined || (rest[1] & 128) === 0) return undefined;
    const begin = size.head + 4;
    if (rest.length < begin + size.payload) return undefined;
    const key = rest.subarray(size.head, begin);
    if (key.every((byte) => byte === 0)) return undefined;
    const payload = Buffer.from(rest.subarray(begin, begin + size.payload));
    for (let at = 0; at < payload.length; at += 1) payload[at] ^= key[at % 4];
    lines.push(
      `& ${show(rest.subarray(0, size.head))} ${key.toString("hex")} ${show(payload)}`.trimEnd(),
    );
    rest = rest.subarray(begin + size.payload);
  }
  return lines;
}

function escaped(bytes, epoch) {
  const hex = (one) => `x${one.charCodeAt(0).toString(16).padStart(2, "0")}`;
  const text = bytes
    .toString("latin1")
    .replace(/[^ -[\]-~]|(.)\1{31,}/g, (all) => {
      if (all.length > 1) return `\\{${hex(all)}*${all.length}}`;
      return { "\r": "\\r", "\n": "\\n", "\t": "\\t", "\\": "\\\\" }[all] ?? `\\${hex(all)}`;
    })
    .replace(/ $/, "\\x20");
  return text.replace(new RegExp(`${epoch}(?=\\.\\d)`, "g"), "\\{epoch}");
}
