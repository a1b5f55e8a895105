// The commands `sealpost report decode` and `verify`: reports from the command line, a file or standard input.
import { createClient, formatDecimal } from '@sealpost/client';
import {
  decodeFullReport,
  explainVerification,
  type FieldUnit,
  type FullReport,
  feedIdOf,
  fieldsOf,
  parseSignerSets,
  type ReportBody,
  ReportFormatError,
  type ReportHead,
  readReportBody,
  recoverSigners,
  reportSchemas,
  type SignerSets,
  schemaVersionOf,
  timeResolutionOf,
  verifyReport,
  windowOf,
} from '@sealpost/protocol';
import type { PlainCommand } from '../../command.ts';
import { readJsonFile } from '../../command-options.ts';
import { parseServerUrl } from '../../credentials.ts';
import { asUsage, CommandError, exitCodes, interruptedCode, usageError } from '../../failure.ts';
import { formatNumberOf, renderPairs, renderTable } from '../../formats.ts';
import { clientOptions, explainRemote } from '../../remote-client.ts';
import { printJson, type Session, withoutReader } from '../../session.ts';
import { openInput, readWholeLines } from '../ingest/input.ts';

/** The help text of an argument that gives reports. */
export const reportForms = 'fullReport as hex, a file, or - for standard input; each line is hex or a JSON report';

export const decodeCommand: PlainCommand = {
  name: 'decode',
  summary: 'Decode reports offline: context, fields, validity and recovered signers. Nothing is verified.',
  arguments: [{ name: '[REPORT]', help: reportForms, default: '-' }],
  options: [{ flag: '--json', help: 'print each as one line of JSON, integers as strings' }],
  examples: [
    ['Decode the latest report', 'sealpost report latest BTC/USD-Streams-CexPrice --raw | sealpost report decode'],
  ],
  run: async ({ session, options: { json } }, source: string) => {
    let count = 0;
    for await (const report of readFullReports(session, source)) {
      const body = asReport('The body', () => readReportBody(report.body));
      if (json) await printJson(session, toDecodedJson(report, body));
      else await session.write(`${count === 0 ? '' : '\n'}${renderDecoded(session, report, body)}`);
      count += 1;
    }
    if (count === 0) throw usageError('No report to decode. Pass fullReport as hex, a file, or standard input.');
  },
};

/** The full reports of an argument, in order. */
export async function* readFullReports(session: Session, source: string): AsyncGenerator<FullReport> {
  if (/^(0x[^/]*|[0-9a-f]{65,})$/i.test(source)) return yield parseFullReport(source, 'REPORT');
  const interruption = session.interruption();
  const { stream, close } = await openInput(session, source);
  let line = 0;
  try {
    for await (const bytes of readWholeLines(stream, interruption, () => {})) {
      for (const text of Buffer.from(bytes).toString('utf8').replace(/\n$/, '').split('\n')) {
        line += 1;
        if (text.trim() !== '') yield parseFullReport(unwrap(text.trim()), `Line ${line}`);
      }
    }
  } finally {
    await close();
  }
  if (interruption.aborted) throw new CommandError(interruptedCode(interruption), 'Interrupted.');
}

const unwrap = (text: string): string => {
  if (!text.startsWith('{')) return text;
  try {
    const value = Object(JSON.parse(text));
    return String(Object(value.report ?? value).fullReport ?? '');
  } catch {
    return text;
  }
};

const parseFullReport = (hex: string, place: string): FullReport => asReport(place, () => decodeFullReport(hex));

const asReport = <T>(place: string, decode: () => T): T => {
  try {
    return decode();
  } catch (error) {
    if (!(error instanceof ReportFormatError)) throw error;
    throw new CommandError(exitCodes.refused, `${place} is not a valid report (${error.reason}): ${error.message}`, {
      cause: error,
    });
  }
};

const exactUnits: readonly FieldUnit[] = ['price', 'amount', 'ratio', 'native token', 'LINK'];

type DecodedField = { readonly name: string; readonly type: string; readonly unit: FieldUnit; readonly value: string };

const readingOf = (value: unknown, unit: FieldUnit, isMs: boolean): string => {
  if (typeof value === 'bigint' && exactUnits.includes(unit)) return formatDecimal(value);
  if (typeof value === 'bigint' && unit === 'nanoseconds') return formatInstant(Number(value / 1_000_000n));
  return typeof value === 'number' && unit === 'stream time' ? formatInstant(isMs ? value : value * 1_000) : '';
};

/** Each field with its ABI type, and its meaning if the number does not show it. */
const describeFields = (body: ReportBody | ReportHead): readonly (DecodedField & { readonly reading: string })[] => {
  const isMs = timeResolutionOf(body.feedId) === 'milliseconds';
  const values = new Map<string, unknown>(Object.entries(body));
  return fieldsOf(body).map(({ name, type, unit }) => {
    const value = values.get(name);
    const abiType = type === 'time' ? (isMs ? 'uint64' : 'uint32') : type;
    return { name, type: abiType, unit, value: String(value), reading: readingOf(value, unit, isMs) };
  });
};

const windowTexts = (body: ReportBody | ReportHead) => {
  const { validFromMs, observationsMs, expiresAtMs } = windowOf(body);
  const expiresAt = expiresAtMs === undefined ? null : formatInstant(expiresAtMs);
  return { validFrom: formatInstant(validFromMs), observations: formatInstant(observationsMs), expiresAt };
};

const titleOf = ({ version }: ReportBody | ReportHead): string | null =>
  version === undefined ? null : reportSchemas[version].title;

/** A body that cannot be decoded has the fields of its head, and the reason. */
const toDecodedJson = (report: FullReport, body: ReportBody | ReportHead) => ({
  feedID: body.feedId,
  version: String(schemaVersionOf(body.feedId)),
  title: titleOf(body),
  ...(body.version === undefined && { code: 'unknown_schema', message: body.problem, body: report.body }),
  context: report.context,
  fields: describeFields(body).map(({ name, type, unit, value }): DecodedField => ({ name, type, unit, value })),
  window: windowTexts(body),
  signers: recoverSigners(report).map((address) => address ?? null),
});

const renderDecoded = ({ paint }: Session, report: FullReport, body: ReportBody | ReportHead): string => {
  const { validFrom, observations, expiresAt } = windowTexts(body);
  const head = renderPairs([
    ['schema', `version ${schemaVersionOf(body.feedId)}, ${titleOf(body) ?? 'unknown schema'}`],
    ['config digest', report.context.configDigest],
    ['epoch and round', report.context.epochAndRound],
    ['extra hash', report.context.extraHash],
    ['valid (UTC)', `${validFrom} to ${observations}, ${expiresAt === null ? 'no expiry' : `expires ${expiresAt}`}`],
  ]);
  const titles = [{ title: 'field' }, { title: 'type' }, { title: 'unit' }, { title: 'value' }, { title: 'meaning' }];
  const rows = describeFields(body).map(({ name, type, unit, value, reading }) => [name, type, unit, value, reading]);
  const signers = recoverSigners(report).map((address, i) => `  ${i + 1}  ${address ?? 'malformed, no signer'}\n`);
  const signed = `${formatNumberOf(signers.length, 'signature')}, recovered signers:\n${signers.join('')}`;
  const rest =
    body.version === undefined
      ? `Other fields are not decoded (unknown_schema): ${body.problem} The body as signed:\n${report.body}\n\n`
      : '';
  return `${head}\n${renderTable(titles, rows, paint)}\n${rest}${signed}`;
};

export const verifyCommand: PlainCommand = {
  name: 'verify',
  summary: 'Verify that a quorum of registered signers signed each report. The exit code is 1 if one does not verify.',
  arguments: [{ name: '[REPORT]', help: reportForms, default: '-' }],
  options: [
    {
      flag: '--signers <file|url>',
      help: 'signers.json, or the URL of a server that publishes it',
      required: true,
    },
    { flag: '--json', help: 'print each verdict as one line of JSON' },
  ],
  examples: [
    ['Verify a file of reports against known signers', 'sealpost report verify hour.ndjson --signers signers.json'],
    [
      'Verify against the signers of a server',
      'sealpost report verify hour.ndjson --signers https://streams.example.com',
    ],
  ],
  run: async ({ session: given, options: { signers, json } }, source: string) => {
    const session = withoutReader(given); // the exit code is about all reports
    const signerSets = await loadSignerSets(session, String(signers));
    let count = 0;
    for await (const report of readFullReports(session, source)) {
      const verdict = judge(report, signerSets);
      count += 1;
      if (!verdict.ok) session.exitWith(exitCodes.refused);
      await (json ? printJson(session, verdict) : session.write(`${renderVerdict(session, verdict)}\n`));
    }
    if (count === 0) throw usageError('No report to verify. Pass fullReport as hex, a file, or standard input.');
  },
};

/** The signer sets of a file, or of a server that publishes them. */
export async function loadSignerSets(session: Session, source: string): Promise<SignerSets> {
  if (!/^https?:/.test(source)) {
    const raw = await readJsonFile(source);
    return asUsage(() => parseSignerSets(raw, source));
  }
  const url = parseServerUrl('--signers', source);
  const call = { signal: session.interruption() };
  const { signers } = await explainRemote(url, () => createClient(clientOptions(url, session)).signers(call));
  return parseSignerSets(signers, `${source}/signers.json`);
}

const judge = (report: FullReport, signerSets: SignerSets) => {
  const { configDigest } = report.context;
  const feedID = feedIdOf(report.body);
  const verification = verifyReport(report, signerSets);
  if (verification.ok)
    return { ok: true, feedID, configDigest, f: verification.signerSet.f, signers: verification.signers } as const;
  const signers = recoverSigners(report).map((address) => address ?? null);
  const { reason, signatureIndex = null } = verification;
  return {
    ok: false,
    feedID,
    configDigest,
    reason,
    message: explainVerification(verification),
    signatureIndex,
    signers,
  } as const;
};

const renderVerdict = ({ paint }: Session, verdict: ReturnType<typeof judge>): string => {
  const { feedID, configDigest, signers } = verdict;
  if (verdict.ok)
    return `${paint.green('✓')} ${feedID} is signed by ${signers.length} signers of ${configDigest} (f = ${verdict.f}).`;
  const { reason, message, signatureIndex: i } = verdict;
  const fault = i === null ? '' : ` Signature ${i + 1} of ${signers.length}: ${signers[i] ?? 'malformed'}.`;
  return `${paint.red('✗')} ${feedID} does not verify (${reason}): ${message}${fault}`;
};

const dateMaxMs = 8.64e15; // the last Date; a millisecond stream's field can be later

/** A time in UTC, with milliseconds unless they are 0. */
export const formatInstant = (ms: number): string =>
  ms > dateMaxMs ? `${ms} ms` : new Date(ms).toISOString().replace('.000Z', 'Z');
