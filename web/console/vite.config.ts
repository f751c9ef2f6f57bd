import { defineConfig } from "vite";
import { checkPlaceholder, fillWithSamples, singleFile } from "./build/single-file.ts";
import { SAMPLES } from "./fixtures/samples.ts";

// `vite build` makes the template for the binary; `--mode sample` and the development server fill it
// with sample data.
export default defineConfig(({ command, mode }) => {
  const filled = command === "serve" || mode === "sample";
  return {
    plugins: [singleFile(), ...(filled ? [fillWithSamples(SAMPLES)] : [checkPlaceholder()])],
    build: {
      outDir: mode === "sample" ? "dist/sample" : "dist",
      emptyOutDir: mode !== "sample",
      modulePreload: false,
      cssCodeSplit: false,
      reportCompressedSize: false,
      rolldownOptions: { input: "report.html", output: { format: "iife" } },
    },
  };
});
