import { spreadLabels } from "./label-places";

export interface EndLabel {
  text: string;
  /** CSS colour of the leader. */
  colour: string;
  /** Where the line ends, in the chart's pixels. */
  x: number;
  y: number;
  faint: boolean;
}

const SVG = "http://www.w3.org/2000/svg";
/** Distance of two names, pixels. */
export const LABEL_HEIGHT = 14;

/** Writes the name of each line at its end, with a leader where the name had to move. */
export function addEndLabels(
  svg: SVGSVGElement,
  labels: readonly EndLabel[],
  box: { right: number; top: number; bottom: number },
): void {
  const places = spreadLabels(
    labels.map((label) => label.y),
    LABEL_HEIGHT,
    box.top + 4,
    box.bottom - 4,
  );
  const group = document.createElementNS(SVG, "g");
  labels.forEach((label, index) => {
    const y = places[index] ?? label.y;
    const opacity = label.faint ? "0.35" : "1";
    const leader = document.createElementNS(SVG, "path");
    const elbow = Math.max(label.x + 7, box.right + 8);
    leader.setAttribute(
      "d",
      `M${label.x + 7},${label.y}L${elbow},${label.y}L${box.right + 18},${y}`,
    );
    leader.setAttribute("fill", "none");
    leader.setAttribute("stroke", label.colour);
    leader.setAttribute("stroke-opacity", label.faint ? "0.2" : "0.6");
    const text = document.createElementNS(SVG, "text");
    text.setAttribute("x", String(box.right + 21));
    text.setAttribute("y", String(y));
    text.setAttribute("dy", "0.34em");
    text.setAttribute("text-anchor", "start");
    text.setAttribute("fill", "currentColor");
    text.setAttribute("opacity", opacity);
    text.textContent = label.text;
    group.append(leader, text);
  });
  svg.append(group);
}
