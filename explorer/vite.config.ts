// Builds the page into the server's package, which serves it as files.
import { defineConfig } from 'vite';

export default defineConfig({
  root: import.meta.dirname,
  base: '/',
  resolve: { conditions: ['source', 'browser', 'module', 'import', 'default'] },
  esbuild: { jsx: 'automatic', jsxImportSource: 'preact' },
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
