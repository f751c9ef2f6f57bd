/** The events of a stream by `eventsource-parser`: id, undefined where the event has none of its own; name; data. */
export function eventsOf(text: string): [id: string | undefined, name: string, data: string][];
