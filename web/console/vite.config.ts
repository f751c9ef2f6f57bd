import { type BuildOptions, defineConfig } from "vite";
import { checkPlaceholder, fillWithSamples, singleFile } from "./build/single-file.ts";
import { mockApi } from "./fixtures/mock-api.ts";
import { SAMPLES } from "./fixtures/samples.ts";

const client = (file: string) =>
  decodeURIComponent(new URL(`../client/src/${file}`, import.meta.url).pathname);

const COMMON = {
  modulePreload: false,
  cssCodeSplit: false,
  reportCompressedSize: false,
} satisfies BuildOptions;

// `vite build` makes the report's template for the binary, `--mode console` the console's files. `--mode sample` and
// the development server fill the report with sample data; the latter also makes up the console's server.
export default defineConfig(({ command, mode }) => {
  const shared = {
    resolve: {
      alias: [
        { find: "pushlab-client/shared", replacement: client("shared.ts") },
        { find: "pushlab-client", replacement: client("pushlab.ts") },
      ],
    },
    // The client's sources are beside this folder.
    server: { fs: { allow: [".."] } },
  };
  if (mode === "console") {
    return {
      ...shared,
      // The server has the two files there, under names that do not change: it is they that it embeds.
      base: "/assets/",
      build: {
        ...COMMON,
        outDir: "dist/console",
        emptyOutDir: true,
        rolldownOptions: {
          input: "index.html",
          output: { entryFileNames: "console.js", assetFileNames: "console[extname]" },
        },
      },
    };
  }
  const filled = command === "serve" || mode === "sample";
  return {
    ...shared,
    plugins: [
      singleFile(),
      ...(filled ? [fillWithSamples(SAMPLES), mockApi()] : [checkPlaceholder()]),
    ],
    build: {
      ...COMMON,
      outDir: mode === "sample" ? "dist/sample" : "dist",
      emptyOutDir: mode !== "sample",
      rolldownOptions: { input: "report.html", output: { format: "iife" } },
    },
  };
});
