import { useEffect, useRef } from "preact/hooks";
import { type ConsolePage, PAGES } from "./pages";
import { REPORTS, ReportPage } from "./report-page";
import { useInnerLinks, usePlace } from "./router";

const isPage = (path: string) => PAGES.some((page) => page.path === path);

/** What stands around every page: skip link, navigation, heading. */
export function Shell() {
  const { path } = usePlace();
  useInnerLinks(isPage);
  const page = PAGES.find((one) => one.path === path) ?? otherPage(path);
  const heading = useRef<HTMLHeadingElement>(null);
  const shown = useRef(page.path);

  useEffect(() => {
    document.title = `${page.title} – Pushlab`;
    if (shown.current === page.path) return;
    shown.current = page.path;
    // Who listens hears where they are now; who looks is at the top, or where Back has scrolled.
    heading.current?.focus({ preventScroll: true });
  }, [page]);

  return (
    <>
      <a class="skip" href="#content">
        Skip to the content
      </a>
      <header class="site">
        <a class="brand" href="/">
          Pushlab
        </a>
        <nav aria-label="Pages">
          <ul>
            {PAGES.filter((one) => one.link !== undefined).map((one) => (
              <li key={one.path}>
                <a href={one.path} aria-current={currentness(one.path, page.path)}>
                  {one.link}
                </a>
              </li>
            ))}
          </ul>
        </nav>
      </header>
      <main id="content" tabIndex={-1}>
        <h1 ref={heading} tabIndex={-1}>
          {page.title}
        </h1>
        <page.Page key={page.path} />
      </main>
    </>
  );
}

/** `page` for the page itself, `true` for one above it. */
function currentness(link: string, path: string): "page" | "true" | undefined {
  if (link === path) return "page";
  return link !== "/" && path.startsWith(`${link}/`) ? "true" : undefined;
}

const REPORT: ConsolePage = { path: REPORTS, title: "Report", Page: ReportPage };

function otherPage(path: string): ConsolePage {
  return path.startsWith(REPORTS) ? REPORT : unknownPage(path);
}

const unknownPages = new Map<string, ConsolePage>();

function unknownPage(path: string): ConsolePage {
  const Page = () => (
    <p class="lead">
      The console has no page <code>{path}</code>. <a href="/">All results</a>
    </p>
  );
  // One component for one path: a new one at each drawing would be mounted anew.
  const page = unknownPages.get(path) ?? { path, title: "No such page", Page };
  unknownPages.clear();
  unknownPages.set(path, page);
  return page;
}
