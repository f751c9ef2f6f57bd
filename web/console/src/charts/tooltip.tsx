import type { ComponentChildren } from "preact";

export interface TooltipContent {
  heading: string;
  rows: TooltipRow[];
}

export interface TooltipRow {
  key: string;
  mark: ComponentChildren;
  label: string;
  value: string;
  /** Interval, or why there is no value. */
  aside?: string;
}

interface TooltipProps {
  content: TooltipContent;
  x: number;
  left: number;
  right: number;
  bottom: number;
}

/** In a narrower chart the values would run off the screen beside the cursor: they go to the far edge. */
const ROOMY_MIN = 480;

/** A hairline at the cursor and the values there; on the side that has more room. */
export function Tooltip({ content, x, left, right, bottom }: TooltipProps) {
  const before = x > (left + right) / 2;
  const beside = before ? { right: `calc(100% - ${x - 10}px)` } : { left: `${x + 10}px` };
  const edge = before ? { left: 0 } : { right: 0 };
  const side = right < ROOMY_MIN ? edge : beside;
  return (
    <>
      <div class="cursor" style={{ left: `${x}px`, height: `${bottom}px` }} />
      <div class="tooltip" style={side}>
        <strong>{content.heading}</strong>
        <table>
          <tbody>
            {content.rows.map((row) => (
              <tr key={row.key}>
                <th scope="row">
                  {row.mark}
                  {row.label}
                </th>
                <td>{row.value}</td>
                <td class="aside">{row.aside}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}

/** The same values as a sentence, to be read out. */
export function spoken(content: TooltipContent): string {
  const rows = content.rows.map((row) =>
    [row.label, row.value, row.aside].filter(Boolean).join(" "),
  );
  return [content.heading, ...rows].join("; ");
}
