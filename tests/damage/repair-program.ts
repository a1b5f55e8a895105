// Repairs a store and says when it is done: to be killed in the middle.
import { writeSync } from 'node:fs';
import { repairStore } from '../../server/src/store/open.ts';

const [folder = ''] = process.argv.slice(2);
writeSync(1, 'begin\n');
const { lost } = await repairStore(folder, { dryRun: false, asideFolder: folder, nowMs: Date.now() });
writeSync(1, `end ${lost.length}\n`);
process.exit(0);
