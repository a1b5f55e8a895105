// Builds the page into the server's package, which serves it as files. `npm run dev` and `npx vite explorer` serve it from its source, and forward
// requests for the API to a running server.
import { defineConfig } from 'vite';

export default defineConfig({
  root: import.meta.dirname,
  base: '/',
  resolve: { conditions: ['source', 'browser', 'module', 'import', 'default'] },
  esbuild: { jsx: 'automatic', jsxImportSource: 'preact' },
  server: {
    host: '127.0.0.1',
    proxy: {
      '^/(api/|time$|sign-in$|(status|signers|openapi)\\.json)': {
        target: process.env.SEALPOST_URL ?? 'http://127.0.0.1:7401',
        changeOrigin: true,
      },
    },
  },
  build: {
    outDir: '../server/public',
    emptyOutDir: true,
    target: 'es2022',
    // One stylesheet for all pages, about 8 KB gzipped: a page that is loaded later has its styles already.
    cssCodeSplit: false,
    // Inline scripts and data: URLs are what the page's policy refuses.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
  },
});
