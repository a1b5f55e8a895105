// A writer to be killed: signs reports, appends them, and prints an acknowledgement for each once the store has promised it.
// Negative controls: `early` acknowledges before the store has answered, `unsynced` writes to LMDB without ever flushing.
import { createHash } from 'node:crypto';
import { writeSync } from 'node:fs';
import { open } from 'lmdb';
import { openStore } from '../../server/src/store/open.ts';
import { createSignedReports, secondStream } from '../support/signed-reports.ts';

const [folder = '', mode = 'honest', startText = '0', countText = '1000000'] = process.argv.slice(2);
const { report } = await createSignedReports();
const streams = [secondStream(1), secondStream(2), secondStream(3)];
/** At once, whatever the pipe takes at a time: a parent that is held up may leave it full. */
const print = (line: string): void => {
  for (let rest = Buffer.from(`${line}\n`); rest.length > 0; ) {
    try {
      rest = rest.subarray(writeSync(1, rest));
    } catch (error) {
      if (Object(error).code !== 'EAGAIN') throw error;
    }
  }
};

const writeUnsynced = async (): Promise<never> => {
  const root = open({ path: folder, noSync: true });
  for (let second = Number(startText); ; second++) {
    const batch = streams.map((feedId) => report(feedId, second, second));
    root.transactionSync(() => {
      for (const { feedId, observationsMs, fullReport } of batch) root.put(`${feedId} ${observationsMs}`, fullReport);
    });
    print(batch.map(({ feedId, observationsMs }) => `ack ${feedId} ${observationsMs} -`).join('\n'));
    await new Promise((resolve) => setImmediate(resolve));
  }
};
if (mode === 'unsynced') await writeUnsynced();

const store = await openStore(folder, 'write');
const newest = streams.map((feedId) => store.reports.latest(feedId)?.observationsMs ?? 0);
print(`open ${newest.join(' ')}`);

let second = Math.max(Number(startText), ...newest.map((ms) => ms / 1_000)) + 1;
for (let sent = 0; sent < Number(countText); sent += streams.length, second += 1) {
  const batch = streams.map((feedId) => report(feedId, second, second, BigInt(second)));
  const acks = batch.map(
    ({ feedId, observationsMs, fullReport }) =>
      `ack ${feedId} ${observationsMs} ${createHash('sha256').update(fullReport).digest('hex')}`,
  );
  if (mode === 'early') print(acks.join('\n'));
  try {
    await store.reports.append(batch);
    if (mode !== 'early') print(acks.join('\n'));
  } catch (error) {
    print(`failed ${(error as { code?: string }).code ?? error}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
await store.close();
print('done');
