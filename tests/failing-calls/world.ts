// A store that a node serves, signed reports to send to it, and a node under it whose calls fail.
import { type ChildProcess, spawn } from 'node:child_process';
import { Agent, type RequestOptions, request } from 'node:http';
import { tmpdir } from 'node:os';
import { signRequest, toReportJson } from '@sealpost/protocol';
import { openStore } from '../../server/src/store/open.ts';
import type { StoredReport } from '../../server/src/store/store.ts';
import { ended, linesOf, type Programs } from '../faults/programs.ts';
import { type Account, createStoreFolder } from '../faults/store-folder.ts';
import { registerSigners } from '../support/running-ingest.ts';
import { createSignedReports, secondStream } from '../support/signed-reports.ts';
import type { Preload } from './preload.ts';

export type CallsWorld = {
  readonly folder: string;
  readonly keyFile: string;
  readonly account: Account;
  /** The next report; each is a second after the one before. */
  readonly next: () => StoredReport;
  /** Those that a node acknowledged. */
  readonly acknowledged: StoredReport[];
  readonly remove: () => void;
};

export const feedId = secondStream(1);
const token = 'calls';

export const createCallsWorld = async (): Promise<CallsWorld> => {
  const { report, signerSets } = await createSignedReports('calls');
  const { folder, keyFile, accounts, remove } = await createStoreFolder('failing', [feedId], ['one']);
  const store = await openStore(folder, 'write');
  await registerSigners(store, signerSets);
  await store.close();
  let second = Math.floor(Date.now() / 1_000) - 20_000;
  return {
    folder,
    keyFile,
    account: accounts[0] as Account, // there is one
    next: () => report(feedId, ++second, second, 10n ** 18n + BigInt(second)),
    acknowledged: [],
    remove,
  };
};

export type CallsNode = {
  readonly child: ChildProcess;
  /** Sends a report; returns what became of it: `stored`, or the code of the error. */
  readonly send: (report: StoredReport) => Promise<string>;
  /** The statuses of a read of the newest report and of a page. */
  readonly read: () => Promise<readonly number[]>;
  /** Reasons and degradations that the probe names. */
  readonly probe: () => Promise<string>;
  /** Writes usage and an audit entry; `ok ok` when both are durable. */
  readonly administer: () => Promise<string>;
  /** Log lines of a kind. */
  readonly logged: (event: string) => number;
  readonly log: () => string;
  readonly kill: () => Promise<void>;
};

type Answer = { readonly status: number; readonly body: string };

/** A connection that is not accepted waits for ever. */
const answerMaxMs = 5_000;

/** Over connections that were opened before any call failed, as a client's are. */
const ask = (agent: Agent, url: string, options: RequestOptions, body?: string): Promise<Answer> =>
  new Promise((resolve, reject) => {
    const sent = request(url, { agent, ...options }, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (chunk: string) => {
        text += chunk;
      });
      response.on('end', () => resolve({ status: response.statusCode ?? 0, body: text }));
      response.on('error', reject);
    });
    sent.setTimeout(answerMaxMs, () => sent.destroy(new Error('timed out')));
    sent.on('error', reject);
    sent.end(body);
  });

const lineOf = (report: StoredReport): string =>
  JSON.stringify(toReportJson(report.feedId, report, `0x${Buffer.from(report.fullReport).toString('hex')}`));

/** The result of the one line that was sent, or the code that ended the answer. */
const resultOf = ({ body }: Answer): string => {
  const { result, code } = JSON.parse(body.trim().split('\n').at(-1) ?? '{}') as { result?: string; code?: string };
  return result === 'stored' || result === 'duplicate' ? 'stored' : String(code);
};

/** Starts a node with the library loaded; resolves when it answers. */
export const startCallsNode = async (programs: Programs, preload: Preload, world: CallsWorld): Promise<CallsNode> => {
  const { folder, keyFile, account } = world;
  const child = spawn(process.execPath, [programs.fileOf('node-program'), 'serve', folder, keyFile, token], {
    env: { ...process.env, ...preload.env },
    stdio: 'pipe',
    cwd: tmpdir(),
  });
  let log = '';
  child.stderr?.setEncoding('utf8').on('data', (chunk: string) => {
    log += chunk;
  });
  child.stdin?.on('error', () => {}); // it has ended, which its exit tells
  const lines = linesOf(child);
  const [, url = '', opsUrl = ''] = String((await lines.next()).value).split(' ');
  if (opsUrl === '') throw new Error(`The node did not start: ${log}`);
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const get = (target: string) => {
    const { userId, secret } = account;
    const headers = signRequest({ method: 'GET', target, userId, timestampMs: Date.now() }, secret);
    return ask(agent, `${url}${target}`, { headers: headers as Record<string, string> });
  };
  return {
    child,
    send: async (report) => {
      const options = { method: 'POST', headers: { Authorization: `Bearer ${token}` } };
      const fresh = new Agent({ keepAlive: false }); // a refused upload ends its connection
      return resultOf(await ask(fresh, `${opsUrl}/ingest`, options, `${lineOf(report)}\n`));
    },
    read: async () => {
      const from = Math.floor(Date.now() / 1_000) - 20_000;
      const page = `/api/v1/reports/page?feedID=${feedId}&startTimestamp=${from}&limit=10`;
      const targets = [`/api/v1/reports/latest?feedID=${feedId}`, page];
      const statuses: number[] = [];
      for (const target of targets) statuses.push((await get(target).catch(() => ({ status: 0 }))).status);
      return statuses;
    },
    probe: async () =>
      (await ask(agent, `${opsUrl}/readyz`, {}).catch(({ message }: Error) => ({ body: message }))).body,
    administer: async () => {
      child.stdin?.write('administer\n');
      return String((await lines.next()).value).replace('administered ', '');
    },
    logged: (event) => log.split(`"event":"${event}"`).length - 1,
    log: () => log,
    kill: async () => {
      agent.destroy();
      child.kill('SIGKILL');
      await ended(child);
    },
  };
};
