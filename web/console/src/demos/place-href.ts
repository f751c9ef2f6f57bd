import { hrefOf } from "../console/router";
import { type Place, personPlace, roomPlace } from "./chat-state";

/** The address of a conversation; the transport stays as it was chosen. */
export function placeHref(place: Place, transport: string | null): string {
  const name = place.slice(place.indexOf(":") + 1);
  const isRoom = place.startsWith("room:");
  return hrefOf("/demos/chat", {
    room: isRoom ? name : null,
    with: isRoom ? null : name,
    transport,
  });
}

/** The conversation that the address names, or else the first room that one is in. */
export function readPlaceOf(query: URLSearchParams, joined: readonly string[]): Place | null {
  const person = query.get("with");
  if (person) return personPlace(person);
  const room = query.get("room") || joined[0];
  return room === undefined ? null : roomPlace(room);
}
