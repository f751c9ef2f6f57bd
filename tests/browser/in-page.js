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
    radio: "input[type=radio]",
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

/**
 * Violations of axe's rules on the page: `rule: help (selector, …)`; of that about colours, of those about shape, or of "all".
 * `window.axe` is there.
 */
export async function violations(about) {
  // Of all rules one alone has to do with colours, and takes as long as all others.
  const rule = "color-contrast";
  const chosen = {
    all: {},
    colours: { runOnly: [rule] },
    shape: { rules: { [rule]: { enabled: false } } },
  };
  const { violations } = await window.axe.run(document, { resultTypes: ["violations"], ...chosen[about] });
  return violations.map(({ id, help, nodes }) => {
    const where = nodes.slice(0, 3).map(({ target, failureSummary }) => `${target}: ${failureSummary}`);
    return `${id}: ${help} (${where.join("; ")})`;
  });
}

/**
 * Notes from the beginning how much of the page moves by itself, and what (Layout Instability, where a browser measures
 * it): a page that is loaded with this has `window.shifts`.
 */
export function watchShifts() {
  window.shifts = [];
  const nameOf = (node) => {
    const element = node instanceof Element ? node : node?.parentElement;
    if (element == null) return "something that is gone";
    return `${element.tagName.toLowerCase()}${[...element.classList].map((one) => `.${one}`).join("")}`;
  };
  const add = (list) => {
    for (const { value, hadRecentInput, sources } of list.getEntries()) {
      if (hadRecentInput) continue;
      const moved = sources.map(
        ({ node, previousRect: from, currentRect: to }) =>
          `${nameOf(node)} from ${from.x},${from.y} ${from.width}×${from.height} to ${to.x},${to.y} ${to.width}×${to.height}`,
      );
      window.shifts.push({ value, moved });
    }
  };
  new PerformanceObserver(add).observe({ type: "layout-shift", buffered: true });
}

/** Resolves once what the page has now is drawn, and its observers have been told. */
export function drawn() {
  return new Promise((resolve) => {
    requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(resolve)));
  });
}

/** How much wider the page is than the window, in pixels. */
export function overflow() {
  return document.documentElement.scrollWidth - document.documentElement.clientWidth;
}
