import { badFrame, type Frame, MAX_TEXT_LENGTH, readFrame, readJson } from "./frames.ts";

/** Turns the text of a stream, parted anywhere, into frames. */
export interface StreamDecoder {
  /**
   * Takes the next piece.
   *
   * @throws PushlabError `bad-frame`; the stream cannot go on after it.
   */
  push(text: string): Frame[];
}

/** Splits text at CR, LF and CRLF. The line that has no end yet waits. */
class LineSplitter {
  #rest = "";
  #endsWithReturn = false;

  push(text: string): string[] {
    if (text === "") return [];
    const start = this.#endsWithReturn && text.startsWith("\n") ? 1 : 0;
    this.#endsWithReturn = text.endsWith("\r");
    const lines = text.slice(start).split(/\r\n|\n|\r/);
    lines[0] = this.#rest + lines[0];
    this.#rest = lines.pop() ?? "";
    if (this.#rest.length > MAX_TEXT_LENGTH) throw badFrame("a line without an end");
    return lines;
  }
}

/** Newline-delimited JSON: a frame a line. */
export class LineDecoder implements StreamDecoder {
  readonly #lines = new LineSplitter();

  push(text: string): Frame[] {
    return this.#lines
      .push(text)
      .filter(Boolean)
      .map((line) => readFrame(readJson(line), line))
      .filter(Boolean) as Frame[];
  }
}

/**
 * An event stream (HTML standard, section 9.2). An event without data is a cursor, and the cursor of a message is its
 * id. A reconnection time stands for a frame that says the same; comments and types say nothing.
 */
export class EventStreamDecoder implements StreamDecoder {
  readonly #lines = new LineSplitter();
  #id = "";
  #hasId = false;
  #data: string | undefined;

  push(text: string): Frame[] {
    const frames: Frame[] = [];
    for (const line of this.#lines.push(text)) {
      if (line === "") {
        const frame = this.#event();
        if (frame) frames.push(frame);
      } else {
        const frame = this.#field(line);
        if (frame) frames.push(frame);
      }
    }
    return frames;
  }

  #field(line: string): Frame | undefined {
    const [, name, value = ""] = /^([^:]*)(?:: ?(.*))?$/s.exec(line) ?? [];
    if (name === "id" && !value.includes("\0")) {
      this.#id = value;
      this.#hasId = true;
    } else if (name === "data") {
      this.#data = this.#data === undefined ? value : `${this.#data}\n${value}`;
      if (this.#data.length > MAX_TEXT_LENGTH) throw badFrame("an event without an end");
    } else if (name === "retry" && /^\d+$/.test(value)) {
      return ["reconnect", +value];
    }
    return undefined;
  }

  #event(): Frame | undefined {
    const [data, hasId] = [this.#data, this.#hasId];
    this.#data = undefined;
    this.#hasId = false;
    if (data === undefined) {
      return hasId && this.#id ? readFrame(["cursor", this.#id], this.#id) : undefined;
    }
    const value = readJson(data);
    if (Array.isArray(value) && value[0] === "msg") value.splice(2, 0, this.#id);
    return readFrame(value, data);
  }
}
