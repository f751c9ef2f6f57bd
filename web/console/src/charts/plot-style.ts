/** A finished drawing, with what the tooltip needs to know. */
export interface Drawing {
  svg: SVGSVGElement;
  /** Horizontal pixel of a value. */
  place: (value: number) => number;
  /** Edges of the plotted area, pixels. */
  left: number;
  right: number;
  bottom: number;
}

/** One left margin for all charts, so that the axes of a column line up. */
export const MARGIN = { left: 58, right: 20, top: 10, bottom: 26 } as const;

/** Approximate width of a character at the axis' font size, pixels. */
export const CHARACTER = 6.6;

export const BASE_STYLE = {
  background: "none",
  color: "currentColor",
  fontFamily: "inherit",
  fontSize: "11.5px",
  overflow: "visible",
} as const;
