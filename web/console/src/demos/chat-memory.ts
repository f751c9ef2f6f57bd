import type { ChatState } from "./chat-state";

/** What a tab keeps of the chat while its page is loaded anew. */
export interface ChatMemory {
  name: string;
  /** Of the visit before. */
  token: string;
  /** Whether leave was taken; a copy of a tab copies what the tab keeps, but who is in the chat is still there. */
  hasLeft: boolean;
  /** Up to here everything had come. */
  cursor: string | undefined;
  joined: ChatState["joined"];
  conversations: ChatState["conversations"];
}

/** With the form of what is kept: another form needs another name. */
const KEY = "pushlab.chat.1";

/** What this tab kept; null where there is nothing, or nothing that can be read. */
export function recall(storage: Pick<Storage, "getItem">): ChatMemory | null {
  try {
    const memory = JSON.parse(storage.getItem(KEY) ?? "null") as ChatMemory | null;
    return typeof memory?.name === "string" && Array.isArray(memory.joined) ? memory : null;
  } catch {
    return null;
  }
}

/** Keeps it for the next page of this tab; null forgets it. Where there is no room, only the messages are lost. */
export function remember(storage: Pick<Storage, "setItem">, memory: ChatMemory | null): void {
  try {
    storage.setItem(KEY, JSON.stringify(memory));
  } catch {
    // Full or forbidden.
  }
}
