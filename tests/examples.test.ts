// Runs every example against the real demo, as its first line says, and holds what it prints against the service.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { createClient, decode, formatDecimal, verify } from '@sealpost/client';
import { parseSignerSets } from '@sealpost/protocol';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startChain } from '../sandbox/src/chain/chain.ts';
import { joinDemo } from './demo-host.ts';
import { openBrowser, openBrowserTimeoutMs } from './support/browser.ts';
import { type Demo, runWithTsx } from './support/running-demo.ts';
import { readText, root } from './support/source-tree.ts';

let demo: Demo;
let client: ReturnType<typeof createClient>;
let feedId: string;
const folder = mkdtempSync(join(tmpdir(), 'sealpost-examples-'));
/** The signers that the settlement trusts. */
const SEALPOST_SIGNERS = join(folder, 'signers.json');

beforeAll(async () => {
  demo = await joinDemo();
  const { SEALPOST_USER_ID: userId, SEALPOST_SECRET: secret } = demo.env;
  client = createClient({ baseUrl: demo.url, userId, secret });
  feedId = (await client.discovery({ status: 'live', baseAsset: 'BTC' })).feeds[0]?.feedId ?? '';
  writeFileSync(SEALPOST_SIGNERS, JSON.stringify((await client.signers()).signers));
}, 360_000);
afterAll(() => {
  rmSync(folder, { recursive: true, force: true });
  return demo?.stop();
});

test('examples: each says first what it does and how it is run', () => {
  const files = readdirSync(`${root}/examples`).filter((name) => name.endsWith('.ts'));
  expect(files).toEqual(
    expect.arrayContaining([
      'latest.ts',
      'history-to-csv.ts',
      'settle-on-chain.ts',
      'settlement.ts',
      'live-ticker.ts',
      'verify-in-browser.ts',
    ]),
  );
  for (const name of files) expect(readText(`examples/${name}`), name).toMatch(/^\/\/ [A-Z]/);
});

test('examples: latest prints the price of a report that is stored', async () => {
  const printed = await runWithTsx('examples/latest.ts', demo.env);
  const [, id, price, at] = /^(0x[0-9a-f]{64}) (\S+) at (\S+)$/m.exec(printed) ?? [];
  expect(id).toBe(feedId);
  const { report } = await client.at(feedId, Date.parse(at ?? '') / 1_000);
  expect(decode(report).priceText).toBe(price);
});

test('examples: history to CSV has a line for every report of the span', async () => {
  // While the machine was busy starting it, the demo has fallen behind: it fills that in now.
  const gapsOfPast = async () => {
    const now = Math.floor(Date.now() / 1_000);
    return (await client.coverage(feedId, { from: now - 320, to: now - 10 })).coverage.gapCount;
  };
  await expect.poll(gapsOfPast, { interval: 500 }).toBe(0);
  const [head, ...lines] = (await runWithTsx('examples/history-to-csv.ts', demo.env, [feedId, '5'])).trim().split('\n');
  expect(head).toBe('validFrom,observed,price,bid,ask');
  const seconds = lines.map((line) => Number(line.split(',')[1]));
  const [from = 0, to = 0] = [seconds[0], seconds.at(-1)];
  expect(to - from).toBeGreaterThan(50);
  const expected: string[] = [];
  for await (const { reports } of client.pages(feedId, { from, to }))
    expected.push(...reports.map((report) => `${report.observationsTimestamp},${decode(report).priceText}`));
  expect(lines.map((line) => line.split(',').slice(1, 3).join(','))).toEqual(expected);
});

test('examples: settlement prints the price of the exact second, who signed it, and what a contract takes', async () => {
  const second = (await client.latest(feedId)).report.observationsTimestamp - 30;
  const token = `0x${'ab'.repeat(20)}`;
  const proof = JSON.parse(
    await runWithTsx('examples/settlement.ts', { ...demo.env, SEALPOST_SIGNERS }, [feedId, String(second), token]),
  );
  const { report } = await client.at(feedId, second);
  const verdict = verify(report, (await client.signers()).signers);
  expect(verdict.ok && verdict.decoded?.priceText).toBe(proof.price);
  expect(verdict.ok && verdict.signers).toEqual(proof.signers);
  expect(proof.contractCall.payload).toBe(report.fullReport);
  expect(proof.contractCall.parameter).toBe(`0x${'0'.repeat(24)}${'ab'.repeat(20)}`);
});

test('examples: settlement refuses a second without a price instead of taking another', async () => {
  const later = Math.floor(Date.now() / 1_000) + 86_400;
  const failure = await runWithTsx('examples/settlement.ts', { ...demo.env, SEALPOST_SIGNERS }, [
    feedId,
    String(later),
  ]).catch((error) => error);
  expect(failure).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/^No price at \d+: .*\{\s+reason: 'not_yet'/),
  });
  expect(failure.stderr).not.toMatch(/^ +at /m); // what is to be expected needs no stack trace
});

test('examples: a trade is settled on-chain by the report of its second', async () => {
  const signerSets = [...parseSignerSets((await client.signers()).signers).values()];
  const chain = await startChain({ port: 0, signerSets });
  try {
    const [, buyer, seller] = chain.accounts;
    const env = {
      ...demo.env,
      SEALPOST_RPC_URL: chain.rpcUrl,
      SEALPOST_CONSUMER: chain.consumer,
      SEALPOST_BUYER_KEY: buyer?.privateKey ?? '',
      SEALPOST_SELLER_KEY: seller?.privateKey ?? '',
    };
    const printed = await runWithTsx('examples/settle-on-chain.ts', env, [feedId]);
    const [, time, strike, price, winner] =
      /^Trade 0 at (\d+): strike (\S+), price (\S+), the (buyer|seller) wins\.$/m.exec(printed) ?? [];
    expect(decode((await client.at(feedId, Number(time))).report).priceText).toBe(price);
    expect(winner).toBe(Number(price) > Number(strike) ? 'buyer' : 'seller');
  } finally {
    await chain.close();
  }
});

test('examples: the live ticker prints a line for every report when piped, and Ctrl-C ends it', async () => {
  // Without tsx's own process, which sends the signal again where the program takes more than 30 ms for it.
  const child = spawn(process.execPath, ['--import', 'tsx', 'examples/live-ticker.ts', feedId], {
    cwd: root,
    env: { PATH: process.env.PATH, ...demo.env },
  });
  const ended = once(child, 'close');
  const printed: string[] = [];
  for await (const line of createInterface(child.stdout)) {
    printed.push(line);
    if (printed.length === 3) child.kill('SIGINT');
  }
  expect(await ended).toEqual([0, null]);
  const from = Date.parse(printed[0]?.split(' ')[0] ?? '') / 1_000;
  const { reports } = await client.page(feedId, from, printed.length);
  const [stream] = (await client.discovery({ status: 'live', baseAsset: 'BTC' })).feeds;
  expect(printed).toEqual(
    reports.map(decode).map(({ observationsMs, priceText, bid = 0n, ask = 0n }) => {
      const cells = [stream?.name, priceText, formatDecimal(bid), formatDecimal(ask)];
      return [new Date(observationsMs).toISOString(), ...cells].join(' ');
    }),
  );
});

/** Serves the example's page by the command in its first lines, on a free port. */
const serveExample = async () => {
  const command = /^\/\/ Run: npx esbuild (.*)$/m.exec(readText('examples/verify-in-browser.ts'))?.[1] ?? '';
  const child = spawn(join(root, 'node_modules/.bin/esbuild'), [...command.split(' '), '--serve=127.0.0.1:0'], {
    cwd: root,
    stdio: ['pipe', 'ignore', 'pipe'], // it ends with its input
  });
  const ended = once(child, 'exit');
  let printed = '';
  // Read to the end: it writes a line for every request.
  const url = await new Promise<string>((resolve, reject) => {
    child.stderr.on('data', (chunk) => {
      printed += chunk;
      const [, found] = /Local:\s+(http:\S+)/.exec(printed) ?? [];
      if (found !== undefined) resolve(found);
    });
    child.once('close', () => reject(new Error(`esbuild has ended: ${printed}`)));
  });
  return { url, close: async () => void (child.kill() && (await ended)) };
};

test(
  'examples: a page finds out who signed a report, fetched or pasted, and refuses one that was altered',
  async () => {
    const [{ browser, close }, site] = await Promise.all([openBrowser(), serveExample()]);
    try {
      const page = await browser.newPage();
      await page.goto(`${site.url}verify-in-browser.html`);
      const verdict = page.locator('#verdict');
      await page.fill('#url', demo.url);
      await page.click('#fetch-report');
      await page.getByText('Give createClient a userId and a secret.').waitFor();
      await page.fill('#user', demo.env.SEALPOST_USER_ID ?? '');
      await page.fill('#secret', demo.env.SEALPOST_SECRET ?? '');
      await page.click('#fetch-report');
      await page.click('#fetch-signers');
      await page.getByText('Signed by a quorum').waitFor();
      const fetched = verify(JSON.parse(await page.inputValue('#report')), (await client.signers()).signers);
      expect(fetched.ok).toBe(true);
      for (const text of fetched.ok ? [fetched.decoded?.priceText ?? '–', ...fetched.signers] : [])
        expect(await verdict.textContent()).toContain(text);
      await page.click('#alter');
      await page.getByText('altered_report').waitFor();
      const { report } = await client.at(feedId, (await client.latest(feedId)).report.observationsTimestamp - 5);
      await page.fill('#report', report.fullReport);
      await page.getByText('Signed by a quorum').waitFor();
      expect(await verdict.textContent()).toContain(decode(report).priceText);
      await page.fill('#report', 'nonsense');
      await page.getByText('Not verified').waitFor();
    } finally {
      await close();
      await site.close();
    }
  },
  openBrowserTimeoutMs,
);
