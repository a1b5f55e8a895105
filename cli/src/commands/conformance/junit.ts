// The report of a run as JUnit XML, which CI systems display: a suite per group, a case per check.
import { groupOf } from '@sealpost/conformance/check';
import type { CheckOutcome, ExtensionResult } from '@sealpost/conformance/run';

// biome-ignore lint/suspicious/noControlCharactersInRegex: XML 1.0 cannot contain these, not even escaped
const forbidden = /[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]/g;

const escapes: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&apos;',
};

const escapeXml = (text: string): string =>
  text.replace(forbidden, '\ufffd').replace(/[&<>"']/g, (character) => escapes[character] ?? character);

const attributes = (values: Readonly<Record<string, string | number>>): string =>
  Object.entries(values)
    .map(([name, value]) => ` ${name}="${escapeXml(String(value)).replaceAll('\n', '&#10;')}"`)
    .join('');

const secondsOf = (results: readonly CheckOutcome[]): string =>
  (results.reduce((sum, { durationMs }) => sum + durationMs, 0) / 1_000).toFixed(3);

const countOf = (results: readonly CheckOutcome[], result: CheckOutcome['result']): number =>
  results.filter((one) => one.result === result).length;

/** Renders results as JUnit XML. `detailOf` is the text of a failure. */
export function renderJunit(
  url: URL,
  results: readonly CheckOutcome[],
  extensions: readonly ExtensionResult[],
  detailOf: (result: CheckOutcome) => string,
): string {
  const groups = groupResults(results);
  const totals = (ofGroup: readonly CheckOutcome[]) => ({
    tests: ofGroup.length,
    failures: countOf(ofGroup, 'failed'),
    skipped: countOf(ofGroup, 'skipped'),
    errors: 0,
    time: secondsOf(ofGroup),
  });
  const suites = [...groups].map(
    ([group, ofGroup]) =>
      `  <testsuite${attributes({ name: group, ...totals(ofGroup) })}>\n${ofGroup.map((one) => renderCase(one, detailOf)).join('')}  </testsuite>\n`,
  );
  const notes = extensions
    .map(({ id, result }) => `    <property${attributes({ name: id, value: result })}/>\n`)
    .join('');
  const properties =
    notes === ''
      ? ''
      : `  <testsuite${attributes({ name: 'extensions', tests: 0 })}>\n    <properties>\n${notes}    </properties>\n  </testsuite>\n`;
  return `<?xml version="1.0" encoding="UTF-8"?>\n<testsuites${attributes({ name: `sealpost conformance ${url.origin}`, ...totals(results) })}>\n${suites.join('')}${properties}</testsuites>\n`;
}

const groupResults = (results: readonly CheckOutcome[]): ReadonlyMap<string, readonly CheckOutcome[]> => {
  const groups = new Map<string, CheckOutcome[]>();
  for (const one of results) groups.set(groupOf(one.check), [...(groups.get(groupOf(one.check)) ?? []), one]);
  return groups;
};

const renderCase = (result: CheckOutcome, detailOf: (result: CheckOutcome) => string): string => {
  const { check, durationMs } = result;
  const name = attributes({ classname: check.id, name: check.title, time: (durationMs / 1_000).toFixed(3) });
  if (result.result === 'passed') return `    <testcase${name}/>\n`;
  if (result.result === 'skipped')
    return `    <testcase${name}>\n      <skipped${attributes({ message: result.reason })}/>\n    </testcase>\n`;
  const message = attributes({ message: `expected ${result.expected}, got ${result.actual}`, type: check.source });
  return `    <testcase${name}>\n      <failure${message}>${escapeXml(detailOf(result))}</failure>\n    </testcase>\n`;
};
