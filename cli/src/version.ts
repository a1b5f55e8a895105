// The release that is running.
import { readFileSync } from 'node:fs';

/** The version of the package, as published. */
export function readVersion(): string {
  const manifest = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));
  return String(manifest.version);
}

/** How the command names itself to servers. */
export const commandAgent = (): string => `sealpost/${readVersion()}`;
