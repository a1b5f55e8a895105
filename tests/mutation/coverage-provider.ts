// Vitest's provider of coverage from the folder of tools. Vitest loads its own providers from beside itself only, so this one is a custom one.
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { CoverageProviderModule } from 'vitest/node';
import { toolsVariable } from './tested-files.ts';

const file = join(process.env[toolsVariable] ?? '', 'node_modules/@vitest/coverage-v8/dist/index.js');
const { default: v8 } = (await import(pathToFileURL(file).href)) as { default: CoverageProviderModule }; // as vitest loads it

export default {
  ...v8,
  getProvider: async () => {
    const provider = await v8.getProvider();
    const resolveOptions = provider.resolveOptions.bind(provider);
    // It calls itself v8, by which workers would load it from beside vitest.
    const custom = { provider: 'custom', customProviderModule: import.meta.filename } as const;
    provider.resolveOptions = () => ({ ...resolveOptions(), ...custom });
    return provider;
  },
} satisfies CoverageProviderModule;
