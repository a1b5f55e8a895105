// A writer that appends when it is told to: `SECOND PRICE` on standard input, and `ack` or the code of the error on standard output.
import { writeSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { openStore } from '../../server/src/store/open.ts';
import { createSignedReports, secondStream } from '../support/signed-reports.ts';

const [folder = ''] = process.argv.slice(2);
const print = (line: string): void => void writeSync(1, `${line}\n`);
const { report } = await createSignedReports();
const store = await openStore(folder, 'write');
print(`open ${store.reports.latest(secondStream(1))?.observationsMs ?? 0}`);
for await (const line of createInterface({ input: process.stdin })) {
  const [second = 0, price = 0] = line.split(' ').map(Number);
  const outcome = await store.reports
    .append([report(secondStream(1), second, second, BigInt(price))])
    .catch((error: { code?: string }) => [String(error.code)]);
  print(outcome[0] === 'stored' ? `ack ${second} ${price}` : `failed ${outcome[0]}`);
}
await store.close();
