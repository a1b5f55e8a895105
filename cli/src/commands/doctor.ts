// The command `sealpost doctor`: what a reader needs of a server, checked step by step, each failure with what to fix.
import {
  type CallOptions,
  type Client,
  type ClientWarning,
  createClient,
  SealpostError,
  verify,
} from '@sealpost/client';
import { type CatalogEntry, type ReportJson, skewMaxMs } from '@sealpost/protocol';
import type { PlainCommand } from '../command.ts';
import type { RawOptions } from '../command-options.ts';
import {
  findUser,
  parseServerUrl,
  readServer,
  readUser,
  serverVariables,
  urlDefault,
  userOptions,
} from '../credentials.ts';
import { CommandError, exitCodes } from '../failure.ts';
import { formatDuration, formatNumberOf, withoutControls } from '../formats.ts';
import { clientOptions, describeRemote, serverAddress } from '../remote-client.ts';
import { printJson, type Session, withoutReader } from '../session.ts';

export const doctorCommand: PlainCommand = {
  name: 'doctor',
  summary:
    'Check access to a server step by step: address, clock, credentials, streams, age and signatures of reports.',
  arguments: [{ name: '[URL]', help: `server ($${serverVariables.url}, else the profile’s, default: ${urlDefault})` }],
  options: [{ flag: '--json', help: 'print every step as one line of JSON' }, ...userOptions],
  examples: [
    ['With the user of SEALPOST_USER_ID and SEALPOST_SECRET', 'sealpost doctor http://127.0.0.1:7401'],
    ['With a profile', 'sealpost doctor https://streams.example.com --profile main'],
  ],
  run: async ({ session: given, options }, rawUrl: string | undefined) => {
    const session = withoutReader(given); // the exit code is about all steps
    const url = await findServer(session, rawUrl, options);
    const anyone = createClient({ ...clientOptions(url, session), retries: 0 });
    let found: Found = { session, url, options, anyone, call: { signal: session.interruption() } };
    const results: StepResult[] = [];
    for (const step of steps) {
      const outcome = await runStep(step, found, url);
      found = { ...found, ...outcome?.found };
      const result = toResult(step.name, outcome);
      results.push(result);
      if (!options.json) await session.write(renderResult(session, result));
    }
    const ok = results.every(({ result }) => result === 'passed');
    if (!ok) session.exitWith(exitCodes.refused);
    if (options.json) await printJson(session, { url: serverAddress(url), ok, steps: results });
  },
};

/** What steps find out for later ones; a step without what it needs is skipped. */
type Findings = {
  readonly session: Session;
  readonly url: URL;
  readonly options: RawOptions;
  /** Ends every call when the command is interrupted. */
  readonly call: CallOptions;
  /** Unsigned and without retries, so that problems show. */
  readonly anyone: Client;
  readonly isReachable: true;
  readonly isSealpost: true;
  /** Server time less ours. */
  readonly offsetMs: number;
  readonly reader: Client;
  /** What the reader corrected by itself. */
  readonly warnings: readonly ClientWarning[];
  readonly feedIds: readonly string[];
  readonly catalog: readonly CatalogEntry[];
  /** The one whose latest report is looked at. */
  readonly stream: { readonly feedId: string; readonly name: string };
  readonly report: ReportJson;
};

type Found = Partial<Findings>;

type Outcome = { readonly ok: boolean; readonly text: string; readonly fix?: string; readonly found: Found };

const pass = (text: string, found: Found = {}): Outcome => ({ ok: true, text, found });
const fail = (text: string, fix: string, found: Found = {}): Outcome => ({ ok: false, text, fix, found });

const checkReachable = async ({ anyone, call, url, session }: Findings): Promise<Outcome> => {
  const sentMs = session.nowMs();
  await anyone.time(call).catch((error: unknown) => {
    if (!(error instanceof SealpostError) || error.status === undefined) throw error; // any answer will do
  });
  return pass(`${url.host} answered in ${session.nowMs() - sentMs} ms.`, { isReachable: true });
};

const checkSealpost = async ({ anyone, call }: Findings): Promise<Outcome> => {
  const { details } = await anyone.time(call);
  if (details.status === 200) return pass('GET /time returned a Sealpost response.', { isSealpost: true });
  // Any server has a Date header; the catalog identifies this API.
  await anyone.discovery({}, call);
  return pass('The server has the same API, without Sealpost extensions.', { isSealpost: true });
};

const synchronize = 'Synchronize this clock, for example with NTP.';
const clockProbes = 3;

/** The probe with the shortest round trip counts: its time is known best, to half of that trip. */
const checkClock = async ({ anyone, call, session }: Findings): Promise<Outcome> => {
  let best = { roundTripMs: Number.POSITIVE_INFINITY, roughMs: 0, offsetMs: 0 };
  for (let probe = 0; probe < clockProbes; probe += 1) {
    const sentMs = session.nowMs();
    const { serverTimeMs, details } = await anyone.time(call);
    const roundTripMs = session.nowMs() - sentMs;
    // A Date header has whole seconds, so that it is half a second behind on average.
    const roughMs = details.status === 200 ? 0 : 500;
    const offsetMs = serverTimeMs + roughMs - sentMs - roundTripMs / 2;
    if (roundTripMs < best.roundTripMs) best = { roundTripMs, roughMs, offsetMs };
  }
  const offsetMs = Math.round(best.offsetMs);
  const side = offsetMs > 0 ? 'behind' : 'ahead of';
  const measured = `This clock is ${Math.abs(offsetMs)} ms ${side} the server’s (± ${Math.ceil(best.roundTripMs / 2) + best.roughMs} ms)`;
  return Math.abs(offsetMs) <= skewMaxMs
    ? pass(`${measured}; the limit is ${skewMaxMs} ms.`, { offsetMs })
    : fail(`${measured}; the limit is ${skewMaxMs} ms.`, synchronize, { offsetMs });
};

/** The step reports which profile it uses. */
const quietly = (session: Session): Session => ({ ...session, stderr: { write: () => {} } });

const checkCredentials = async ({ session, url, options }: Findings): Promise<Outcome> => {
  try {
    const { from, openClient } = await readUser(quietly(session), options, url);
    const warnings: ClientWarning[] = [];
    const reader = openClient(url, session, { onWarning: (warning) => void warnings.push(warning) });
    return pass(`Using ${from}.`, { reader, warnings });
  } catch (error) {
    if (error instanceof CommandError) return fail('No usable credentials.', error.message);
    throw error;
  }
};

/** The client signs again with the server's time if this clock is rejected; other clients would not. */
const checkAccepted = async ({ reader, call, warnings }: Findings): Promise<Outcome> => {
  const { feeds } = await reader.feeds(call);
  const found = { feedIds: feeds.map(({ feedID }) => feedID) };
  if (!warnings.some(({ code }) => code === 'clock_skew')) return pass('The server accepts the signature.', found);
  const text = 'The server rejects this clock’s time (clock_skew) and accepts its own.';
  return fail(text, synchronize, found);
};

const checkCatalog = async ({ anyone, call }: Findings): Promise<Outcome> => {
  const { feeds } = await anyone.discovery({}, call);
  return pass(`The catalog lists ${formatNumberOf(feeds.length, 'public stream')}.`, { catalog: feeds });
};

const streamsShown = 3;

const checkStreams = async ({ reader, call, feedIds, catalog }: Findings): Promise<Outcome> => {
  if (feedIds.length === 0)
    return fail('This account may not read any stream.', 'Ask the server’s operator for access.');
  const hidden = feedIds.filter((id) => !catalog.some(({ feedId }) => feedId === id));
  const listed = hidden.length === 0 ? catalog : (await reader.discovery({ hidden: true }, call)).feeds;
  const names = feedIds.slice(0, streamsShown).map((id) => listed.find(({ feedId }) => feedId === id)?.name ?? id);
  const rest = feedIds.length - names.length;
  const list = `${names.join(', ')}${rest > 0 ? ` and ${rest} more` : ''}`;
  // Without this a reader wonders why there are more streams than the catalog lists.
  const which = hidden.length === 0 ? '' : `, ${hidden.length} of them hidden`;
  return pass(`${formatNumberOf(feedIds.length, 'stream')} readable${which}: ${list}.`, {
    stream: pickStream(feedIds, listed),
  });
};

const freshMaxSeconds = 60;

/** A stream that should have reports now: live and always open, where there is one. */
const pickStream = (feedIds: readonly string[], catalog: readonly CatalogEntry[]): Findings['stream'] => {
  const readable = catalog.filter(({ feedId }) => feedIds.includes(feedId));
  const live = readable.filter(({ status }) => status === 'live');
  const feedId = feedIds[0] ?? '';
  return live.find(({ marketHours }) => marketHours === '24/7') ?? live[0] ?? readable[0] ?? { feedId, name: feedId };
};

const checkFresh = async ({ reader, call, session, offsetMs, stream }: Findings): Promise<Outcome> => {
  const { report } = await reader.latest(stream.feedId, call);
  const seconds = Math.floor((session.nowMs() + offsetMs) / 1_000) - report.observationsTimestamp;
  const age = `The latest report of ${stream.name} is ${formatDuration(Math.max(0, seconds))} old`;
  if (seconds <= freshMaxSeconds) return pass(`${age}.`, { report });
  const fix = 'Check the source of the server’s reports. Outside market hours this is expected.';
  return fail(`${age}, more than ${formatDuration(freshMaxSeconds)}.`, fix, { report });
};

const checkSignatures = async ({ anyone, call, report }: Findings): Promise<Outcome> => {
  const sets = await anyone.signers(call).catch((error: unknown) => {
    if (!(error instanceof SealpostError) || error.code !== 'not_supported') throw error;
    return undefined;
  });
  if (sets === undefined)
    return fail('The server does not publish signer sets.', 'Use: sealpost report verify --signers FILE.');
  const verdict = verify(report, sets.signers);
  if (verdict.ok)
    return pass(`The report is signed by ${formatNumberOf(verdict.signers.length, 'signer')} of /signers.json.`);
  return fail(`The report does not verify: ${verdict.message}`, 'Do not use it. Report it to the server’s operator.');
};

type Step = {
  readonly name: string;
  readonly needs: readonly (keyof Findings)[];
  readonly check: (findings: Findings) => Promise<Outcome>;
};

/** Every step, in order. */
const steps: readonly Step[] = [
  { name: 'reachable', needs: [], check: checkReachable },
  { name: 'sealpost', needs: ['isReachable'], check: checkSealpost },
  { name: 'clock', needs: ['isSealpost'], check: checkClock },
  { name: 'catalog', needs: ['isSealpost'], check: checkCatalog },
  { name: 'credentials', needs: [], check: checkCredentials },
  { name: 'accepted', needs: ['isSealpost', 'reader'], check: checkAccepted },
  { name: 'streams', needs: ['reader', 'feedIds', 'catalog'], check: checkStreams },
  { name: 'fresh', needs: ['reader', 'offsetMs', 'stream'], check: checkFresh },
  { name: 'signatures', needs: ['report'], check: checkSignatures },
];

type StepResult = {
  readonly step: string;
  readonly result: 'passed' | 'failed' | 'skipped';
  readonly text: string;
  readonly fix?: string;
};

/** The server of the argument, else as other commands find it. Credentials that cannot be used are a step's to tell. */
const findServer = async (session: Session, rawUrl: string | undefined, options: RawOptions): Promise<URL> => {
  if (rawUrl !== undefined) return parseServerUrl('URL', rawUrl);
  const user = await findUser(quietly(session), options).catch((error: unknown) => {
    if (error instanceof CommandError) return undefined;
    throw error;
  });
  return user?.server ?? readServer(session, {}, user?.url);
};

/** The outcome; undefined when something is missing that the step needs. */
const runStep = async ({ needs, check }: Step, found: Found, url: URL): Promise<Outcome | undefined> => {
  if (needs.some((name) => found[name] === undefined)) return undefined;
  try {
    return await check(found as Findings); // what the step uses is what it needs, which is there
  } catch (error) {
    if (!(error instanceof SealpostError)) throw error;
    const { problem, advice } = describeRemote(error, url);
    return fail(problem, advice);
  }
};

const toResult = (step: string, outcome: Outcome | undefined): StepResult => {
  if (outcome === undefined) return { step, result: 'skipped', text: 'Skipped: an earlier step failed.' };
  const { ok, text, fix } = outcome;
  return { step, result: ok ? 'passed' : 'failed', text, ...(fix ? { fix } : {}) };
};

const stepWidth = Math.max(...steps.map(({ name }) => name.length));

const renderResult = ({ paint }: Session, { step, result, text, fix }: StepResult): string => {
  const mark = { passed: paint.green('✓'), failed: paint.red('✗'), skipped: paint.dim('–') }[result];
  const advice = fix === undefined ? '' : `${' '.repeat(stepWidth + 4)}Fix: ${fix}\n`;
  return `${mark} ${step.padEnd(stepWidth)}  ${withoutControls(text)}\n${withoutControls(advice)}`;
};
