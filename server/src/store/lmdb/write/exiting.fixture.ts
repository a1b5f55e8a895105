// A process that writes to the store in a folder without a pause, and exits in the middle of it with code 130: so long after it began to open it, or to write.
import { openLmdbStore } from '../engine.ts';

const [, , folder = '', moment = '', afterMs = ''] = process.argv;
const exitLater = () => setTimeout(() => process.exit(130), Number(afterMs));
const opening = openLmdbStore(folder, 'write');
if (moment === 'opening') exitLater();
const { quarantine } = await opening;
if (moment === 'writing') exitLater();
const line = {
  atMs: 0,
  code: 'malformed_line',
  message: '',
  feedId: null,
  observationsMs: null,
  line: 'a'.repeat(100),
};
const write = async (): Promise<never> => {
  for (;;) await quarantine.add([line]);
};
await Promise.all([write(), write()]);
