// The command `sealpost report calldata`: the call of a verifier contract for reports of a server, a file or standard input.
import type { Client } from '@sealpost/client';
import { feeTokens, verifierFunctions, verifyBulkCalldata, verifyCalldata } from '@sealpost/client/onchain';
import { encodeFullReport, type Hex, limits, parseAddress } from '@sealpost/protocol';
import type { PlainCommand } from '../../command.ts';
import type { RawOptions } from '../../command-options.ts';
import { accessOptions, readAccess } from '../../credentials.ts';
import { asUsage, CommandError, exitCodes, usageError } from '../../failure.ts';
import { explainRemote, readRemoteFeeds } from '../../remote-client.ts';
import type { Session } from '../../session.ts';
import { feedForms } from '../../stream-argument.ts';
import { parseTime, timeForms } from '../../time-arguments.ts';
import { readFullReports, reportForms } from './inspection.ts';

const chains = Object.keys(feeTokens);

export const calldataCommand: PlainCommand = {
  name: 'calldata',
  summary: 'Print the calldata that verifies a report on-chain: verify of the verifier proxy, verifyBulk for several.',
  arguments: [{ name: '[FEED...]', help: feedForms }],
  options: [
    { flag: '--at <time>', help: `the report that is valid at this time (default: the newest): ${timeForms}` },
    { flag: '--report <report>', help: `instead of FEED: ${reportForms}` },
    {
      flag: '--fee-token <token>',
      help: 'token that pays the fee: native or link with --chain, or an address (default: none)',
    },
    { flag: '--chain <id>', help: 'chain ID, for --fee-token native or link', choices: chains },
    { flag: '--json', help: 'print function, fee token, number of reports and calldata as one line of JSON' },
    ...accessOptions,
  ],
  examples: [
    ['Pay in the native token on Arbitrum', 'sealpost report calldata LINK/USD --fee-token native --chain 42161'],
    ['Reports of a file, in one call', 'sealpost report calldata --report hour.ndjson --json'],
  ],
  run: async ({ session, options, print }, feeds: readonly string[]) => {
    const feeToken = parseFeeToken(options);
    const reports = await readReports(session, options, feeds);
    const [first] = reports;
    if (first === undefined) throw usageError('No report. Pass FEED, or --report with a report, a file or -.');
    const isOne = reports.length === 1;
    const calldata = isOne ? verifyCalldata(first, feeToken) : verifyBulkCalldata(reports, feeToken);
    const { signature } = verifierFunctions[isOne ? 'verify' : 'verifyBulk'];
    const value = { function: signature, feeToken: feeToken ?? null, reports: reports.length, calldata };
    await print(value, `${calldata}\n`);
  },
};

const parseFeeToken = ({ feeToken, chain }: RawOptions): Hex | undefined => {
  const tokens = Object.entries(feeTokens).find(([id]) => id === chain)?.[1];
  if (chain !== undefined && tokens === undefined)
    throw usageError(
      `--chain has the value "${chain}", expected ${chains.join(', ')}. Or give --fee-token an address.`,
    );
  if (feeToken === undefined) return undefined;
  if (feeToken !== 'native' && feeToken !== 'link') return asUsage(() => parseAddress(feeToken, '--fee-token'));
  if (tokens !== undefined) return tokens[feeToken];
  throw usageError(`--fee-token ${feeToken} needs --chain: ${chains.join(', ')}. Or give it an address.`);
};

const readReports = async (
  session: Session,
  options: RawOptions,
  feeds: readonly string[],
): Promise<readonly string[]> => {
  if (options.report === undefined) return feeds.length === 0 ? [] : readFromServer(session, options, feeds);
  if (feeds.length > 0 || options.at !== undefined) throw usageError('--report cannot be combined with FEED or --at.');
  const reports: string[] = [];
  for await (const report of readFullReports(session, String(options.report))) {
    // As many as a request for several streams returns; more would not fit the gas of a transaction.
    if (reports.length === limits.feedIdsMax)
      throw usageError(`--report has more than ${limits.feedIdsMax} reports. Make several calls of them.`);
    reports.push(encodeFullReport(report));
  }
  return reports;
};

const readFromServer = async (
  session: Session,
  options: RawOptions,
  raws: readonly string[],
): Promise<readonly string[]> => {
  const { at } = options;
  const second = at === undefined ? undefined : parseTime('--at', String(at), Math.floor(session.nowMs() / 1_000));
  const { url, openClient } = await readAccess(session, options);
  const client = openClient(url, session);
  const signal = session.interruption();
  return explainRemote(url, async () => {
    const feedIds = (await readRemoteFeeds(client, url, raws, signal)).map(({ feedId }) => feedId);
    return feedIds.length === 1 && feedIds[0] !== undefined
      ? [await readOne(client, feedIds[0], second, signal)]
      : readMany(client, feedIds, second, signal);
  });
};

const readOne = async (client: Client, feedId: string, second: number | undefined, signal: AbortSignal) => {
  const call = { signal };
  const { report } = await (second === undefined ? client.latest(feedId, call) : client.at(feedId, second, call));
  return report.fullReport;
};

/** A call pays for every report in it, so a missing one fails the command. */
const readMany = async (
  client: Client,
  feedIds: readonly string[],
  second: number | undefined,
  signal: AbortSignal,
) => {
  const call = { signal };
  const { reports, missing } = await (second === undefined
    ? client.latestMany(feedIds, call)
    : client.bulk(feedIds, second, call));
  if (missing.length === 0) return reports.map(({ fullReport }) => fullReport);
  const names = missing.map(({ feedID }) => feedID).join(', ');
  throw new CommandError(exitCodes.refused, `No report of ${names}. Leave these streams out, or change --at.`);
};
