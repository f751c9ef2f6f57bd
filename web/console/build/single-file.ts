import type { Plugin } from "vite";

export const PLACEHOLDER = "__PUSHLAB_REPORT__";

/** JSON that may stand inside a script element: `<` is escaped, as the binary does it. */
export function jsonForScript(data: unknown): string {
  return JSON.stringify(data).replaceAll("<", "\\u003c");
}

/** What a Content Security Policy calls a script or a style sheet. */
async function hashOf(text: string): Promise<string> {
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
  return `'sha256-${btoa(String.fromCharCode(...new Uint8Array(digest)))}'`;
}

/**
 * Puts the one script and the one style sheet into the page and drops their files, so that the
 * report is a single file that opens from disk. Replacements are functions because `$&` and the like
 * occur in minified code and would be expanded in a replacement string.
 */
export function singleFile(): Plugin {
  return {
    name: "single-file",
    enforce: "post",
    async generateBundle(_options, bundle) {
      let script = "";
      let style = "";
      for (const [name, file] of Object.entries(bundle)) {
        if (file.type === "chunk") script += file.code;
        else if (name.endsWith(".css")) style += String(file.source);
        else continue;
        delete bundle[name];
      }
      const page = Object.values(bundle).find((file) => file.fileName.endsWith(".html"));
      if (page?.type !== "asset") this.error("no page to put the script into");
      const inline = script.trim().replaceAll("</script", "<\\/script");
      const sheet = style.trim();
      const [scriptHash, styleHash] = await Promise.all([hashOf(inline), hashOf(sheet)]);
      const html = String(page.source)
        .replace(/\s*<script type="module"[^>]*><\/script>/, "")
        .replace(/\s*<link rel="stylesheet"[^>]*>/, "")
        .replace("</head>", () => `<style>${sheet}</style>\n  </head>`)
        // No script runs and no style counts but these, whatever a name or a note in the data may be.
        .replace("script-src 'unsafe-inline'", () => `script-src ${scriptHash}`)
        .replace("style-src 'unsafe-inline'", () => `style-src ${styleHash}`)
        // Last in the body: it reads the data element, which the parser must have reached.
        .replace("</body>", () => `<script>${inline}</script>\n  </body>`);
      if (/\ssrc=|<link[^>]*href="(?!data:)|type="module"/.test(html.replace(inline, () => ""))) {
        this.error("the page still asks for another file");
      }
      page.source = html;
    },
  };
}

/** A page for each sample, for screenshots; the development server takes one by `?sample=`. */
export function fillWithSamples(samples: Readonly<Record<string, () => unknown>>): Plugin {
  const fill = (html: string, sample: () => unknown) =>
    html.replace(PLACEHOLDER, () => jsonForScript(sample()));
  return {
    name: "fill-with-samples",
    enforce: "post",
    transformIndexHtml(html, { server, originalUrl }) {
      if (server === undefined) return html;
      const wanted = new URL(originalUrl ?? "/", "http://localhost").searchParams.get("sample");
      const sample = samples[wanted ?? "report"] ?? samples.report;
      return sample === undefined ? html : fill(html, sample);
    },
    generateBundle(_options, bundle) {
      const page = Object.values(bundle).find((file) => file.fileName.endsWith(".html"));
      if (page?.type !== "asset") this.error("no page to fill");
      const template = String(page.source);
      delete bundle[page.fileName];
      for (const [name, sample] of Object.entries(samples)) {
        this.emitFile({ type: "asset", fileName: `${name}.html`, source: fill(template, sample) });
      }
    },
  };
}

/** The binary replaces the placeholder textually, so it may occur only once. */
export function checkPlaceholder(): Plugin {
  return {
    name: "check-placeholder",
    enforce: "post",
    generateBundle(_options, bundle) {
      for (const file of Object.values(bundle)) {
        if (file.type !== "asset" || !file.fileName.endsWith(".html")) continue;
        const count = String(file.source).split(PLACEHOLDER).length - 1;
        if (count !== 1) this.error(`${PLACEHOLDER} occurs ${count} times, it must occur once`);
      }
    },
  };
}
