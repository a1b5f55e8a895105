import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { readPrices } from './prices.ts';

test('prices: rows may name a stream by pair and by name', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'sealpost-prices-'));
  try {
    const file = join(folder, 'prices.csv');
    writeFileSync(file, 'time,stream,price\n1s,ETH/USD,1\n2s,ETH/USD-Streams-CexPrice,2\n3s,foo/usd,3\n4s,FOO/USD,4\n');
    expect((await readPrices(file)).specs).toMatchObject([{ pair: 'ETH/USD' }, { pair: 'FOO/USD' }]);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
