// The command `sealpost conformance`: every promise of the API, checked against any deployment by requests that only read.
import { lstat, open, rm, writeFile } from 'node:fs/promises';
import { groupOf } from '@sealpost/conformance/check';
import type { Ask } from '@sealpost/conformance/requester';
import { type CheckOutcome, type RunReport, runChecks } from '@sealpost/conformance/run';
import { checkTable } from '@sealpost/conformance/table';
import { SkipError } from '@sealpost/conformance/verdict';
import { authHeaders, type FeedId, parseFeedId, parseSignerSets, type SignerSets, skewMaxMs } from '@sealpost/protocol';
import { describeFileFailure } from '@sealpost/server/runtime/files';
import type { Call, PlainCommand } from '../../command.ts';
import { collected, parseCount, type RawOptions } from '../../command-options.ts';
import {
  parseServerUrl,
  readServer,
  readUser,
  readWsUrl,
  serverVariables,
  type User,
  urlDefault,
  userOptions,
  wsUrlOption,
} from '../../credentials.ts';
import { asUsage, CommandError, exitCodes, interruptedCode, usageError } from '../../failure.ts';
import { renderTable } from '../../formats.ts';
import { createProgress } from '../../progress.ts';
import { explainConnection, serverAddress } from '../../remote-client.ts';
import { printJson, type Session, withoutReader } from '../../session.ts';
import { commandAgent } from '../../version.ts';
import { loadSignerSets } from '../report/inspection.ts';
import type { CurlOptions } from './curl.ts';
import { renderJunit } from './junit.ts';
import { renderDetail, renderRun, toRunJson } from './render.ts';

const defaults = {
  requestsPerSecond: 5,
  timeout: 10,
  timeLimit: 300,
  slowAfter: 2_000,
  liveSeconds: 15,
  staleAfter: 15,
};

const groups = [...new Set(checkTable.map(groupOf))];

export const conformanceCommand: PlainCommand = {
  name: 'conformance',
  summary:
    'Check any deployment against every promise of the API. It only reads. The exit code is 1 if a promise is broken.',
  arguments: [{ name: '[URL]', help: `server ($${serverVariables.url}, else the profile’s, default: ${urlDefault})` }],
  options: [
    {
      flag: '--only <group|id>',
      help: 'make only these checks; can be repeated',
      repeatable: true,
      choices: groups,
    },
    { flag: '--list', help: 'list the checks with their sentences, without a server' },
    { flag: '--strict', help: 'fail if a check was skipped, too' },
    {
      flag: '--feed <id>',
      help: 'check this stream, by feed ID; can be repeated (default: up to 6 readable streams)',
      repeatable: true,
    },
    {
      flag: '--hidden <id>',
      help: 'a hidden stream, by feed ID: it must not be listed to those who do not ask for it; can be repeated',
      repeatable: true,
    },
    {
      flag: '--signers <file|url>',
      help: 'signer sets to verify reports against (default: /signers.json of the server, if it has one)',
    },
    {
      flag: '--requests-per-second <count>',
      help: 'requests per second, fewer if the server’s rate-limit headers say so',
      default: String(defaults.requestsPerSecond),
    },
    { flag: '--timeout <seconds>', help: 'time for one request', default: String(defaults.timeout) },
    {
      flag: '--time-limit <seconds>',
      help: 'time for the whole run; checks not begun by then are skipped',
      default: String(defaults.timeLimit),
    },
    {
      flag: '--slow-after <ms>',
      help: 'an answer or a frame that takes longer fails a check',
      default: String(defaults.slowAfter),
    },
    {
      flag: '--live-seconds <seconds>',
      help: 'longest wait for frames, pings and new reports',
      default: String(defaults.liveSeconds),
    },
    {
      flag: '--stale-after <seconds>',
      help: 'a live stream that is so far behind the others has stopped',
      default: String(defaults.staleAfter),
    },
    {
      flag: '--skew-max <ms>',
      help: 'how far the clock of a request may be off, as the server is configured',
      default: String(skewMaxMs),
    },
    { flag: '--json', help: 'print the report as one line of JSON' },
    { flag: '--junit <file>', help: 'write the report as JUnit XML; - for standard output' },
    wsUrlOption,
    ...userOptions,
  ],
  examples: [
    ['Check the server of a profile', 'sealpost conformance https://streams.example.com --profile main'],
    [
      'In CI, with the user of SEALPOST_USER_ID and SEALPOST_SECRET',
      'sealpost conformance https://streams.example.com --strict --junit conformance.xml',
    ],
    ['Only live delivery', 'sealpost conformance --only websocket --only origins'],
  ],
  run: async (call, rawUrl: string | undefined) => (call.options.list ? listChecks(call) : checkServer(call, rawUrl)),
};

const listChecks = async ({ session, options }: Call): Promise<void> => {
  const checks = selectChecks(options).map((check) => ({ ...check, group: groupOf(check) }));
  if (options.json) {
    const rows = checks.map(({ id, group, title, source, sentence }) => ({ id, group, title, source, sentence }));
    return printJson(session, { checks: rows });
  }
  const columns = [{ title: 'check' }, { title: 'source' }, { title: 'title' }];
  await session.write(
    renderTable(
      columns,
      checks.map(({ id, source, title }) => [id, source, title]),
      session.paint,
    ),
  );
};

const selectChecks = ({ only }: RawOptions): typeof checkTable => {
  const names = collected(only);
  if (names === undefined) return checkTable;
  const unknown = names.find((name) => !checkTable.some((check) => check.id === name || groupOf(check) === name));
  if (unknown !== undefined) {
    throw usageError(
      `--only has the value "${unknown}", expected the ID of a check or one of ${groups.join(', ')}. See: sealpost conformance --list.`,
    );
  }
  return checkTable.filter((check) => names.includes(check.id) || names.includes(groupOf(check)));
};

const checkServer = async ({ session, options }: Call, rawUrl: string | undefined): Promise<void> => {
  const run = readRunOptions(options);
  const checks = selectChecks(options);
  await requireWritable(options.junit);
  const given = rawUrl === undefined ? undefined : parseServerUrl('URL', rawUrl);
  const user = await readUser(session, options, given);
  const url = given ?? user.server ?? readServer(session, {}, user.url);
  const wsUrl = new URL(readWsUrl(session, options, url, user) ?? serverAddress(url));
  const fixed = options.signers === undefined ? undefined : await loadSignerSets(session, String(options.signers));
  const signal = session.interruption();
  const progress = createProgress(session.stderr);
  const report = await runChecks({
    ...run,
    url,
    wsUrl,
    checks,
    signal,
    sign: user.sign,
    signAs: user.signAs,
    userAgent: commandAgent(),
    nowMs: session.nowMs,
    withExtensions: collected(options.only) === undefined,
    signers: fixed === undefined ? publishedSigners() : async () => fixed,
    onResult: (done) => progress.update({ fraction: done / checks.length, count: done, label: 'checks' }),
  })
    .catch((error: unknown) => {
      throw signal.aborted ? new CommandError(interruptedCode(signal), 'Interrupted.', { cause: error }) : error;
    })
    .finally(() => progress.end());
  await printReport(session, options, url, redactReport(report, user), curlOptions(url, wsUrl, user, options));
};

const readFeedIds = (flag: string, given: unknown): readonly FeedId[] =>
  (collected(given) ?? []).map((raw) => asUsage(() => parseFeedId(raw, flag)));

const readRunOptions = (options: RawOptions) => {
  const count = (flag: string, key: string, min: number, max: number): number =>
    parseCount(flag, String(options[key]), min, max);
  return {
    requestsPerSecond: count('--requests-per-second', 'requestsPerSecond', 1, 1_000),
    timeoutMs: count('--timeout', 'timeout', 1, 300) * 1_000,
    timeLimitMs: count('--time-limit', 'timeLimit', 1, 86_400) * 1_000,
    feedIds: readFeedIds('--feed', options.feed),
    hiddenIds: readFeedIds('--hidden', options.hidden),
    rules: {
      skewMaxMs: count('--skew-max', 'skewMax', 1, 3_600_000),
      slowAfterMs: count('--slow-after', 'slowAfter', 1, 300_000),
      liveMs: count('--live-seconds', 'liveSeconds', 1, 3_600) * 1_000,
      staleAfterMs: count('--stale-after', 'staleAfter', 1, 86_400) * 1_000,
    },
  };
};

/** Before a run that takes a minute, not after it. */
const requireWritable = async (junit: unknown): Promise<void> => {
  if (junit === undefined || junit === '-') return;
  const file = String(junit);
  const exists = await lstat(file).then(
    () => true,
    () => false,
  );
  try {
    await (await open(file, 'a')).close();
    if (!exists) await rm(file); // a run that is interrupted leaves no empty file
  } catch (error) {
    throw usageError(`--junit: ${describeFileFailure(file, error)}`, { cause: error });
  }
};

/** The signer sets that the deployment publishes, read once. */
const publishedSigners = (): ((ask: Ask) => Promise<SignerSets>) => {
  let reading: Promise<SignerSets> | undefined;
  const read = async (ask: Ask): Promise<SignerSets> => {
    const { status, json } = await ask('/signers.json', { signed: false });
    if (status !== 200 || json === undefined)
      throw new SkipError('The deployment does not publish signer sets. Pass them with --signers FILE.');
    try {
      return parseSignerSets(json, '/signers.json');
    } catch {
      throw new SkipError('The signer sets in /signers.json are malformed. Pass them with --signers FILE.');
    }
  };
  return (ask) => {
    reading ??= read(ask);
    return reading;
  };
};

/** A hostile server may repeat the secret, if it knows it. */
const redactReport = (report: RunReport, { redact }: User): RunReport => ({
  ...report,
  results: report.results.map((result): CheckOutcome => {
    if (result.result === 'failed')
      return { ...result, expected: redact(result.expected), actual: redact(result.actual) };
    return result.result === 'skipped' ? { ...result, reason: redact(result.reason) } : result;
  }),
});

const curlOptions = (url: URL, wsUrl: URL, { sign }: User, { profile, profiles }: RawOptions): CurlOptions => ({
  url,
  wsUrl,
  userId: sign('GET', '/', 0)[authHeaders.userId] ?? '',
  signFlags: [
    ...(profile === undefined ? [] : ['--profile', String(profile)]),
    ...(profiles === undefined ? [] : ['--profiles', String(profiles)]),
  ],
});

const printReport = async (
  given: Session,
  options: RawOptions,
  url: URL,
  report: RunReport,
  curl: CurlOptions,
): Promise<void> => {
  const { results, extensions, isAnswered, isComplete, failureCode } = report;
  const has = (result: CheckOutcome['result']): boolean => results.some((one) => one.result === result);
  const isOk = isAnswered && isComplete && !has('failed') && !(options.strict && has('skipped'));
  const session = withoutReader(given); // a file is written also where nobody reads the rest
  if (!isOk) session.exitWith(isAnswered && (has('failed') || isComplete) ? exitCodes.refused : exitCodes.unavailable);
  if (options.json) await printJson(session, toRunJson(url, report, isOk, curl));
  else if (options.junit !== '-') await session.write(renderRun(report, session.paint, curl));
  if (options.junit !== undefined) {
    const xml = renderJunit(url, results, extensions, (result) => renderDetail(result, curl));
    await (options.junit === '-' ? session.write(xml) : writeFile(String(options.junit), xml));
  }
  if (!isAnswered) throw new CommandError(exitCodes.unavailable, explainConnection(url, failureCode));
};
