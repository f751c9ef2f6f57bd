import { fileURLToPath } from "node:url";
import { build, type Rolldown } from "vite";

async function chunks(mode: string): Promise<Rolldown.OutputChunk[]> {
  const root = fileURLToPath(new URL("..", import.meta.url));
  const results = await build({ root, mode, logLevel: "warn", build: { write: false } });
  if (!Array.isArray(results)) throw new Error("a build has a result for each format");
  return results.flatMap(({ output }) => output).filter((chunk) => chunk.type === "chunk");
}

/** The files by name, as `npm run build` writes them. */
export async function bundles(): Promise<Map<string, string>> {
  const all = [...(await chunks("production")), ...(await chunks("script"))];
  return new Map(all.map(({ fileName, code }) => [fileName, code]));
}
