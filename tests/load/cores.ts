// The cores that this process may use, which need not be the first ones, nor all.
import { readFileSync } from 'node:fs';

/** Their numbers, from a list such as 0-1,4; none where the system is not Linux. */
export const allowedCores = (): readonly string[] => {
  if (process.platform !== 'linux') return [];
  const [, list = ''] = /Cpus_allowed_list:\s+(\S+)/.exec(readFileSync('/proc/self/status', 'utf8')) ?? [];
  return list.split(',').flatMap((range) => {
    const [from = 0, to = from] = range.split('-').map(Number);
    return Array.from({ length: to - from + 1 }, (_, i) => String(from + i));
  });
};
