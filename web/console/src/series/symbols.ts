export type SymbolShape =
  | "circle"
  | "square"
  | "triangle"
  | "diamond"
  | "triangle-down"
  | "plus"
  | "star"
  | "hexagon";

/** In the order of the palette's slots. */
export const SYMBOLS: readonly SymbolShape[] = [
  "circle",
  "square",
  "triangle",
  "diamond",
  "triangle-down",
  "plus",
  "star",
  "hexagon",
];

export type Corner = readonly [x: number, y: number];

/**
 * A marker as a polygon around the origin, about one unit in radius, evened out in area so that no
 * marker looks heavier than another. One definition serves charts and legends.
 */
export function symbolCorners(shape: SymbolShape): readonly Corner[] {
  switch (shape) {
    case "circle":
      return ring(24, 1);
    case "square":
      return ring(4, 1.25, Math.PI / 4);
    case "triangle":
      return ring(3, 1.4);
    case "triangle-down":
      return ring(3, 1.4, Math.PI);
    case "diamond":
      return ring(4, 1.35);
    case "hexagon":
      return ring(6, 1.15);
    case "star":
      return ring(10, 1.5).map(([x, y], index) =>
        index % 2 === 0 ? [x, y] : [x * 0.45, y * 0.45],
      );
    case "plus":
      return plus(1.3, 0.45);
  }
}

function ring(count: number, radius: number, turn = 0): Corner[] {
  return Array.from({ length: count }, (_, index) => {
    const angle = turn + (index * 2 * Math.PI) / count;
    return [radius * Math.sin(angle), -radius * Math.cos(angle)] as const;
  });
}

function plus(long: number, thick: number): Corner[] {
  const quarter: Corner[] = [
    [-thick, -long],
    [thick, -long],
    [thick, -thick],
  ];
  const turns: ((corner: Corner) => Corner)[] = [
    ([x, y]) => [x, y],
    ([x, y]) => [-y, x],
    ([x, y]) => [-x, -y],
    ([x, y]) => [y, -x],
  ];
  return turns.flatMap((turn) => quarter.map(turn));
}
