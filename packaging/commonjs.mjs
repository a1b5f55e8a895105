// Gives every built package an entry for require(): dist/cjs holds a wrapper for each entry point, and the declarations as CommonJS.
// The wrapper loads the ES module itself, so that a program that uses both import and require() has one copy of every class (D107).
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const readManifest = (folder) => JSON.parse(readFileSync(join(root, folder, 'package.json'), 'utf8'));

/** Loads the module of the same path in dist; where Node cannot, says what to do. */
const wrapperOf = (name, packageName, node) => `'use strict';
try {
  module.exports = require('${'../'.repeat(name.split('/').length)}${name}.js');
} catch (cause) {
  if (cause.code !== 'ERR_REQUIRE_ESM') throw cause;
  throw new Error("${packageName} is an ES module, which require() loads on Node ${node}. On older releases, use: await import('${packageName}'). In jest, use that too, and start it with NODE_OPTIONS=--experimental-vm-modules.", { cause });
}
`;

const writeCommonJs = (folder, { name, engines, exports }) => {
  const dist = join(root, folder, 'dist');
  const target = join(dist, 'cjs');
  rmSync(target, { recursive: true, force: true });
  mkdirSync(target, { recursive: true });
  writeFileSync(join(target, 'package.json'), `${JSON.stringify({ type: 'commonjs' })}\n`);
  // The files' specifiers stay as they are: the package.json beside them says that they are CommonJS.
  const declarations = readdirSync(dist, { recursive: true }).filter((path) => path.endsWith('.d.ts'));
  for (const path of declarations.filter((path) => !path.startsWith('cjs'))) {
    const text = readFileSync(join(dist, path), 'utf8').replace(/^\/\/# sourceMappingURL=.*\n?/m, '');
    mkdirSync(join(target, path, '..'), { recursive: true });
    writeFileSync(join(target, path), text);
  }
  for (const { require } of Object.values(exports).filter((entry) => entry.require !== undefined)) {
    const entry = require.default.replace(/^\.\/dist\/cjs\/(.*)\.js$/, '$1');
    writeFileSync(join(target, `${entry}.js`), wrapperOf(entry, name, engines.node));
  }
};

/** Does so for every package that is published. */
export const writeCommonJsEntries = () => {
  for (const folder of readManifest('.').workspaces) {
    const manifest = readManifest(folder);
    if (manifest.private !== true) writeCommonJs(folder, manifest);
  }
};
