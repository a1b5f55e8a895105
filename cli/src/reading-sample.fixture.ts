// A server with an account and streams in every condition, and the reading commands run against it as the program runs them.
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { FeedId } from '@sealpost/protocol';
import type { NewReport, StoredReport } from '@sealpost/server/store/store';
import { expect } from 'vitest';
import { type Credentials, openService } from '../../tests/support/running-api.ts';
import { testStream } from '../../tests/support/running-ingest.ts';
import { createSignedReports, millisecondStream, secondStream } from '../../tests/support/signed-reports.ts';
import { type Ran, runCommand, type SampleOptions } from './sample-session.fixture.ts';

export const { report, signerSets } = await createSignedReports();
export const now = 1_763_200_000; // 2025-11-15T09:46:40Z
export const nowMs = now * 1_000 + 123;
const streamIds = [1, 2, 3, 4, 5].map(secondStream);
/** Live with reports; testing with one; hidden without any; with more reports than a page holds; not readable. */
export const [btc, eth, silent, many, forbidden] = streamIds as [FeedId, FeedId, FeedId, FeedId, FeedId]; // five were made
const fast = millisecondStream(1);
export const manyCount = 1_200;

export const first = report(btc, now - 60, now - 51, 97_012_345678901234567890n);
export const second = report(btc, now - 50, now - 41, 97_000n * 10n ** 18n);
export const third = report(btc, now - 20, now - 11, -1n);
export const fastReport = report(fast, nowMs - 349, nowMs - 100, 5n * 10n ** 17n);

export const hexOf = ({ fullReport }: StoredReport): string => `0x${Buffer.from(fullReport).toString('hex')}`;

/** A report as the API writes it. */
export const wire = (one: StoredReport): string =>
  JSON.stringify({
    feedID: one.feedId,
    validFromTimestamp: Math.floor(one.validFromMs / 1_000),
    observationsTimestamp: Math.floor(one.observationsMs / 1_000),
    fullReport: hexOf(one),
  });

const sampleStreams = [
  testStream(btc, { name: 'BTC/USD-Streams-CexPrice' }),
  testStream(eth, { name: 'ETH/USD-Streams-CexPrice', status: 'testing' }),
  testStream(silent, { name: 'NEW/USD-Streams-CexPrice', hidden: true }),
  testStream(many, { name: 'MANY/USD-Streams-CexPrice', status: 'testing' }),
  testStream(forbidden, { name: 'EUR/USD-Streams-ForexPrice', assetClass: 'Forex' }),
  testStream(fast, { name: 'FAST/USD-Streams-CexPrice', status: 'testing' }),
];

// The bytes are those of one report: signing a thousand would take most of the test's time.
const copies = Array.from({ length: manyCount }, (_, i) => {
  const ms = (now - manyCount + i) * 1_000;
  return { feedId: many, validFromMs: ms, observationsMs: ms, fullReport: first.fullReport };
});

export type RunOptions = SampleOptions & { readonly as?: Credentials };

/** Opens the server and a folder. Commands run as an account that may read all but one stream; their output contains no secret. */
export const openReadingSample = async () => {
  const folder = mkdtempSync(join(tmpdir(), 'sealpost-reading-'));
  const service = await openService(sampleStreams, signerSets, () => nowMs);
  const priced = (one: StoredReport, price: bigint): NewReport => ({ ...one, price }); // so that there are candles
  await service.append([
    priced(first, 97_012_345678901234567890n),
    priced(second, 97_000n * 10n ** 18n),
    priced(third, -1n),
    report(eth, now - 50, now - 41),
    fastReport,
    ...copies.map((one) => priced(one, 1n)),
  ]);
  const alice = await service.addAccount(['filter:asset_class=Crypto', `feed:${silent}`]);
  const hide = (text: string) =>
    text.replace(/\(request [^)]+\)/g, '(request ID)').replaceAll(new URL(service.url).host, 'HOST');
  const run = async (args: readonly string[], options: RunOptions = {}): Promise<Ran> => {
    const { userId, secret } = options.as ?? alice;
    const env = { SEALPOST_URL: service.url, SEALPOST_USER_ID: userId, SEALPOST_SECRET: secret };
    const { code, stdout, stderr } = await runCommand(args, { env, nowMs, ...options });
    expect(`${stdout}${stderr}`).not.toContain(alice.secret);
    return { code, stdout: hide(stdout), stderr: hide(stderr) };
  };
  const file = (name: string, content: string, mode = 0o600): string => {
    const path = join(folder, name);
    writeFileSync(path, content);
    chmodSync(path, mode);
    return path;
  };
  const close = async () => {
    await service.close();
    rmSync(folder, { recursive: true, force: true });
  };
  return { service, alice, folder, file, run, close };
};

/** Runs `act` with the address of a server that answers like this. */
export const against = async <T>(answer: RequestListener, act: (url: string) => Promise<T>): Promise<T> => {
  const server = createServer(answer);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo; // it listens on a port
  try {
    return await act(`http://127.0.0.1:${port}`);
  } finally {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
};
