/**
 * Moves labels apart so that none overlaps: neighbours that are too close form a block around the
 * mean of their wishes, and blocks that meet are joined. Keeps the order and stays within the bounds
 * for as long as there is room.
 */
export function spreadLabels(
  wishes: readonly number[],
  gap: number,
  low: number,
  high: number,
): number[] {
  const order = wishes.map((_, index) => index).sort((a, b) => at(wishes, a) - at(wishes, b));
  const blocks: { members: number[]; middle: number }[] = [];
  for (const index of order) {
    let block = { members: [index], middle: at(wishes, index) };
    for (let above = blocks.at(-1); above !== undefined; above = blocks.at(-1)) {
      const reach = ((above.members.length + block.members.length) * gap) / 2;
      if (block.middle - above.middle >= reach) break;
      blocks.pop();
      const members = [...above.members, ...block.members];
      const middle = members.reduce((sum, one) => sum + at(wishes, one), 0) / members.length;
      block = { members, middle: within(middle, members.length) };
    }
    blocks.push({ ...block, middle: within(block.middle, block.members.length) });
  }

  const places = new Array<number>(wishes.length).fill(0);
  for (const { members, middle } of blocks) {
    members.forEach((index, position) => {
      places[index] = middle + (position - (members.length - 1) / 2) * gap;
    });
  }
  return places;

  function within(middle: number, count: number): number {
    const half = ((count - 1) * gap) / 2;
    return Math.max(low + half, Math.min(high - half, middle));
  }
}

function at(values: readonly number[], index: number): number {
  return values[index] ?? 0;
}
