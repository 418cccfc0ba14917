import { join } from 'node:path'
import { build } from 'vite'

/** Bundles a TypeScript fixture so that a plain Node.js child can run it; returns the path of the program. */
export async function bundleProgram(entry: string, outDir: string): Promise<string> {
  await build({
    configFile: false,
    logLevel: 'error',
    build: { ssr: entry, outDir, emptyOutDir: false, rollupOptions: { output: { entryFileNames: 'program.mjs' } } },
    ssr: { noExternal: true },
  })
  return join(outDir, 'program.mjs')
}
