import { median } from "../format/median";
import { formatQuantity } from "../format/number";
import { TRANSPORT_NAMES } from "../live/transport-select";
import type { Measurement } from "./finding";
import { TRANSPORTS } from "./options";

/** What the measurements say, as sentences for people, the most important first. */
export function verdict(measurements: readonly Measurement[]): string[] {
  if (measurements.length === 0) return [];
  const usable = measurements.filter(({ ok, is_buffered }) => ok && !is_buffered);
  const held = measurements.filter(({ is_buffered }) => is_buffered);
  const failed = measurements.filter(({ ok, is_buffered }) => !ok && !is_buffered);
  const sentences: string[] = [];
  if (usable.length === 0) {
    sentences.push(
      held.length === 0
        ? "Nothing gets through: the server does not answer, or something between refuses it."
        : "Nothing works as it should.",
    );
  } else if (usable.length === measurements.length && usable.length > 1) {
    sentences.push(`All ${measurements.length} transports work.`);
  } else {
    sentences.push(`${names(usable)} ${verb(usable, "works", "work")}.`);
  }
  if (held.length > 0) {
    sentences.push(
      `${names(held)} ${verb(held, "is", "are")} held back by something between this browser and the server, ` +
        "such as a proxy that collects answers before it passes them on.",
    );
  }
  if (failed.length > 0 && usable.length + held.length > 0) {
    sentences.push(`${names(failed)} ${verb(failed, "does", "do")} not get through.`);
  }
  const cut = measurements.filter(({ ok, cuts }) => ok && cuts > 0);
  if (cut.length > 0) {
    sentences.push(
      `${names(cut)} ${verb(cut, "was", "were")} cut meanwhile, resumed, and lost nothing.`,
    );
  }
  return [...sentences, ...choice(usable)];
}

/** Which one a client takes, and what messages take over it. */
function choice(usable: readonly Measurement[]): string[] {
  const best = TRANSPORTS.map((name) => usable.find(({ transport }) => transport === name)).find(
    (one) => one !== undefined,
  );
  const typical = median(best?.latencies_ms ?? []);
  if (best === undefined || typical === undefined) return [];
  const taken = formatQuantity(typical, "ms");
  const isOne = usable.length === 1;
  const subject = isOne
    ? "Messages"
    : `A client would use ${TRANSPORT_NAMES[best.transport]}: messages`;
  return [`${subject} take ${taken} there and back.`];
}

/** `WebSocket, long polling and polling`, as a sentence begins. */
function names(measurements: readonly Measurement[]): string {
  const all = measurements.map(({ transport }, at) => {
    const name = TRANSPORT_NAMES[transport];
    return at > 0 && transport.endsWith("polling") ? name.toLowerCase() : name;
  });
  const last = all.pop() ?? "";
  return all.length === 0 ? last : `${all.join(", ")} and ${last}`;
}

/** Server-Sent Events are many by themselves. */
function verb(measurements: readonly Measurement[], one: string, many: string): string {
  return measurements.length === 1 && measurements[0]?.transport !== "sse" ? one : many;
}
