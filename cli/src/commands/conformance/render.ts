// The report of a run on a terminal and as JSON.
import { groupOf } from '@sealpost/conformance/check';
import type { CheckOutcome, ExtensionResult, RunReport } from '@sealpost/conformance/run';
import { formatNumberOf, type Paint, withoutControls } from '../../formats.ts';
import { serverAddress } from '../../remote-client.ts';
import { type CurlOptions, toCurl } from './curl.ts';

const marks = { passed: '✓', failed: '✗', skipped: '–' } as const;

const colored = (paint: Paint, result: CheckOutcome['result']): ((text: string) => string) =>
  result === 'passed' ? paint.green : result === 'failed' ? paint.red : paint.yellow;

/** A result as one line, and for a failure its details. */
export function renderResult(result: CheckOutcome, width: number, paint: Paint, curl: CurlOptions): string {
  const { check } = result;
  const mark = colored(paint, result.result)(marks[result.result]);
  const reason = result.result === 'skipped' ? paint.dim(` (${oneLine(result.reason)})`) : '';
  const line = `  ${mark} ${check.id.padEnd(width)}  ${check.title}${reason}\n`;
  return result.result === 'failed' ? `${line}${renderDetail(result, curl, '      ')}` : line;
}

/** What was expected, what came, who promises it, and how to see it. */
export function renderDetail(result: CheckOutcome, curl: CurlOptions, indent = ''): string {
  if (result.result !== 'failed') return '';
  const { check, expected, actual, request } = result;
  const who = check.source === 'specification' ? 'specification' : 'SDKs';
  const pairs = [
    ['expected', expected],
    ['actual', actual],
    [who, check.sentence],
    ...(request === undefined ? [] : [['reproduce', toCurl(request, curl)]]),
  ] as const;
  return pairs.map(([name = '', value = '']) => `${indent}${`${name}:`.padEnd(15)}${oneLine(value)}\n`).join('');
}

const oneLine = (text: string): string => withoutControls(text).replace(/\s+/g, ' ');

/** The heading of a group with its counts. */
const renderGroup = (group: string, results: readonly CheckOutcome[], paint: Paint): string =>
  `${paint.bold(group)} ${paint.dim(describeCounts(results))}\n`;

const describeCounts = (results: readonly CheckOutcome[]): string => {
  const count = (result: CheckOutcome['result']) => results.filter((one) => one.result === result).length;
  const parts = [`${count('passed')} passed`, `${count('failed')} failed`, `${count('skipped')} skipped`];
  return parts.filter((part) => !part.startsWith('0 ')).join(', ');
};

/** All groups with their checks. */
export function renderRun({ results, extensions, requests }: RunReport, paint: Paint, curl: CurlOptions): string {
  const width = Math.max(0, ...results.map(({ check }) => check.id.length));
  const groups = [...new Set(results.map(({ check }) => groupOf(check)))].map((group) => {
    const ofGroup = results.filter(({ check }) => groupOf(check) === group);
    return `${renderGroup(group, ofGroup, paint)}${ofGroup.map((one) => renderResult(one, width, paint, curl)).join('')}`;
  });
  const summary = `${describeCounts(results)}, ${formatNumberOf(requests, 'request')}`;
  return `${groups.join('\n')}${renderExtensions(extensions, paint)}\n${summary}\n`;
}

const renderExtensions = (extensions: readonly ExtensionResult[], paint: Paint): string => {
  if (extensions.length === 0) return '';
  const width = Math.max(...extensions.map(({ id }) => id.length));
  const lines = extensions.map(
    ({ id, title, result }) => `  ${id.padEnd(width)}  ${result.padEnd(7)}  ${paint.dim(title)}\n`,
  );
  return `\n${paint.bold('extensions')} ${paint.dim('beyond the specification; absence is not a failure')}\n${lines.join('')}`;
};

/** The report for programs. */
export function toRunJson(
  url: URL,
  { results, extensions, requests, isComplete }: RunReport,
  isOk: boolean,
  curl: CurlOptions,
) {
  const count = (result: CheckOutcome['result']) => results.filter((one) => one.result === result).length;
  return {
    url: serverAddress(url),
    ok: isOk,
    complete: isComplete,
    passed: count('passed'),
    failed: count('failed'),
    skipped: count('skipped'),
    requests,
    checks: results.map(toCheckJson(curl)),
    extensions,
  };
}

const toCheckJson =
  (curl: CurlOptions) =>
  (result: CheckOutcome): unknown => {
    const { check, durationMs } = result;
    const { id, title, source, sentence } = check;
    const about = { id, group: groupOf(check), title, source, sentence, result: result.result, durationMs };
    if (result.result === 'skipped') return { ...about, reason: result.reason };
    if (result.result === 'passed') return about;
    const { expected, actual, request } = result;
    return { ...about, expected, actual, ...(request && { curl: toCurl(request, curl) }) };
  };
