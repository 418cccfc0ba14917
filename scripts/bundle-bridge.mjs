// Makes one file of the bridge, in place, after tsc: its start time is a promise (SP-01), and each file that it loads costs a
// millisecond.
import { fileURLToPath } from 'node:url'
import { build } from 'vite'

const root = fileURLToPath(new URL('..', import.meta.url))
await build({
  configFile: false,
  root,
  logLevel: 'warn',
  build: {
    ssr: `${root}dist/bridge/bridge.js`,
    outDir: `${root}dist/bridge`,
    emptyOutDir: false,
    copyPublicDir: false,
    minify: false,
    target: 'node20',
    rollupOptions: { output: { entryFileNames: 'bridge.js', codeSplitting: false } },
  },
  ssr: { noExternal: true },
})
