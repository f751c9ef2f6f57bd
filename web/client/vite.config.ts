import { defineConfig } from "vitest/config";

// `vite build` writes the modules; `--mode script`, for a script tag, a script that makes the global `Pushlab`.
export default defineConfig(({ mode }) => {
  const isScript = mode === "script";
  const modules = { pushlab: "src/pushlab.ts", shared: "src/shared.ts" };
  return {
    build: {
      target: "es2022",
      emptyOutDir: !isScript,
      reportCompressedSize: false,
      lib: isScript
        ? { entry: "src/pushlab.ts", name: "Pushlab", formats: ["iife"] }
        : { entry: modules, formats: ["es"] },
      rolldownOptions: {
        preserveEntrySignatures: "allow-extension",
        output: {
          minify: true,
          comments: false,
          generatedCode: { symbols: false },
          entryFileNames: isScript ? "pushlab.iife.js" : "[name].js",
          chunkFileNames: "client.js",
        },
      },
    },
    test: {
      environment: "node",
      setupFiles: "test/same-pauses.ts",
      // They mostly wait.
      maxWorkers: 4,
      testTimeout: 60_000,
    },
  };
});
