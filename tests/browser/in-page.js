// What runs inside a page. Each function is sent to the browser as text, so it stands alone.

/** The first visible element of a role whose accessible name is `name`, or fits `{ source, flags }`; null for none. */
export function findByRole(scope, role, name) {
  const elements = {
    alert: "",
    article: "article",
    button: "button, summary",
    cell: "td",
    checkbox: "input[type=checkbox]",
    combobox: "select",
    heading: "h1, h2, h3, h4",
    img: "svg[role=img]",
    link: "a[href]",
    list: "ul, ol",
    listitem: "li",
    log: "",
    navigation: "nav",
    region: "section",
    row: "tr",
    status: "output",
    textbox:
      "input:not([type]), input[type=text], input[type=search], input[type=password], input[type=number], " +
      "input[type=datetime-local], textarea",
  };
  const selector = [elements[role], `[role="${role}"]`].filter(Boolean).join(", ");
  const tidy = (text) => (text ?? "").replace(/\s+/g, " ").trim();
  const visibleText = (element) => {
    let text = "";
    for (const node of element.childNodes) {
      if (node.nodeType === Node.TEXT_NODE) text += node.data;
      else if (node.nodeType === Node.ELEMENT_NODE && node.getAttribute("aria-hidden") !== "true") {
        if (!["SELECT", "INPUT", "TEXTAREA"].includes(node.tagName)) text += visibleText(node);
      }
    }
    return text;
  };
  const nameOf = (element) => {
    const named = element.getAttribute("aria-labelledby");
    if (named) return named.split(" ").map((id) => document.getElementById(id)?.textContent).join(" ");
    const label = element.getAttribute("aria-label");
    if (label) return label;
    if (element.labels?.length) return visibleText(element.labels[0]);
    return visibleText(element);
  };
  const fits = (text) =>
    typeof name === "string" ? text === name : new RegExp(name.source, name.flags).test(text);
  for (const element of scope.querySelectorAll(selector)) {
    if (element.getClientRects().length > 0 && fits(tidy(nameOf(element)))) return element;
  }
  return null;
}

/** The text of an element as a reader sees it. */
export function textOf(element) {
  return element.innerText;
}

/** Violations of axe's rules on the page: `rule: help (selector, …)`. `window.axe` is there. */
export async function violations() {
  const { violations } = await window.axe.run(document, { resultTypes: ["violations"] });
  return violations.map(({ id, help, nodes }) => {
    const where = nodes.slice(0, 3).map(({ target, failureSummary }) => `${target}: ${failureSummary}`);
    return `${id}: ${help} (${where.join("; ")})`;
  });
}

/** Adds up from the beginning how much of the page moves by itself (Layout Instability, where a browser measures it). */
export function watchShifts() {
  window.shifts = 0;
  const add = (list) => {
    for (const entry of list.getEntries()) if (!entry.hadRecentInput) window.shifts += entry.value;
  };
  new PerformanceObserver(add).observe({ type: "layout-shift", buffered: true });
}

/** How much wider the page is than the window, in pixels. */
export function overflow() {
  return document.documentElement.scrollWidth - document.documentElement.clientWidth;
}
