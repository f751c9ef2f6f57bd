/** The currency of the demos. Their pages are in English, and so are their amounts. */
const FORMAT = new Intl.NumberFormat("en", { style: "currency", currency: "EUR" });

/** Cents as an amount: `€1,234.50`. */
export function formatMoney(cents: number): string {
  return FORMAT.format(cents / 100);
}

/** Cents as one types them: `1234.50`. */
export function moneyText(cents: number): string {
  return (cents / 100).toFixed(2);
}

/** Reads an amount as one types it, with a point or a comma before the cents; undefined for anything else. */
export function parseMoney(text: string): number | undefined {
  const match = /^\s*€?\s*(\d{1,10})(?:[.,](\d{1,2}))?\s*€?\s*$/.exec(text);
  if (match === null) return undefined;
  return Number(match[1]) * 100 + Number((match[2] ?? "").padEnd(2, "0"));
}

/** Bids that are quickly made: the least allowed, and two round ones above it. */
export function quickBids(least: number): [number, number, number] {
  const unit = 10 ** Math.max(0, Math.floor(Math.log10(Math.max(1, least))) - 3);
  const above = (amount: number, step: number) => Math.floor(amount / step + 1) * step;
  const next = above(least, 50 * unit);
  return [least, next, above(next, 100 * unit)];
}
