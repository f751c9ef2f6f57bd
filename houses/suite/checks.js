// All checks, in the order in which they are made.

import { checks as accounts } from "./checks/accounts.js";
import { checks as args } from "./checks/arguments.js";
import { checks as bids } from "./checks/bids.js";
import { checks as expiry } from "./checks/expiry.js";
import { checks as garbage } from "./checks/garbage.js";
import { checks as items } from "./checks/items.js";
import { checks as leaving } from "./checks/leaving.js";
import { checks as order } from "./checks/order.js";

export const CHECKS = [
  ...accounts,
  ...items,
  ...bids,
  ...expiry,
  ...order,
  ...args,
  ...garbage,
  ...leaving,
];

/** What is seen only when all others are over. */
export const AUDIT = "everybody-heard-the-same";
export const INSTALLED = "the-house-is-installed";
export const STARTS = "the-house-starts";
export const THROWS = "no-client-throws";
