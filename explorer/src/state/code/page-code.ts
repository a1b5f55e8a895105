// The code of pages that are loaded on demand.
import { signal } from '@preact/signals';
import type { Chunks } from './chunks.ts';

export type PageCode<Name extends string, Code> = {
  /** Undefined until it is loaded; a signal, so whoever waits for it also learns when another call loaded it. */
  readonly find: (name: Name) => Code | undefined;
  readonly load: (name: Name) => Promise<void>;
  /** The same without retries; failures are for `load` to report. */
  readonly preload: (name: Name) => Promise<void>;
};

export function createPageCode<Name extends string, Code>(
  loaders: Readonly<Record<Name, () => Promise<Code>>>,
  chunks: Chunks,
): PageCode<Name, Code> {
  const loaded = signal<ReadonlyMap<Name, Code>>(new Map());
  const keep = (name: Name, code: Code): void => {
    loaded.value = new Map([...loaded.peek(), [name, code]]);
  };
  return {
    find: (name) => loaded.value.get(name),
    load: async (name) => {
      if (!loaded.peek().has(name)) keep(name, await chunks.load(loaders[name]));
    },
    preload: async (name) => {
      if (loaded.peek().has(name)) return;
      const code = await loaders[name]().catch(() => undefined);
      if (code !== undefined) keep(name, code);
    },
  };
}
