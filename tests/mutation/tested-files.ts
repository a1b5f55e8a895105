// The files whose mutants must not survive their tests (row 39): who may read what, what a request may say, how often, and the bytes of records.

export type TestedFile = {
  readonly path: string;
  /** The tests that must find its mutants: those beside it, which run in milliseconds. */
  readonly tests: readonly string[];
  /** No mutant may survive: signatures are compared, timestamps bounded or entitlements applied here. */
  readonly isStrict?: true;
};

const protocol = 'protocol/src';
const access = 'server/src/access';
const http = 'server/src/http';
const format = 'server/src/store/format';

export const testedFiles: readonly TestedFile[] = [
  { path: `${protocol}/request-signing.ts`, tests: [`${protocol}/request-signing.test.ts`], isStrict: true },
  { path: `${access}/authenticate.ts`, tests: [`${access}/authenticate.test.ts`], isStrict: true },
  { path: `${access}/hmac.ts`, tests: [`${access}/hmac.test.ts`], isStrict: true },
  { path: `${access}/entitlements.ts`, tests: [`${access}/entitlements.test.ts`], isStrict: true },
  { path: `${http}/query.ts`, tests: [`${http}/query.test.ts`], isStrict: true },
  { path: `${protocol}/feed-id.ts`, tests: [`${protocol}/feed-id.test.ts`] },
  { path: `${protocol}/parameters.ts`, tests: [`${protocol}/parameters.test.ts`] },
  { path: `${protocol}/query.ts`, tests: [`${protocol}/query.test.ts`] },
  { path: `${access}/rate-limit.ts`, tests: [`${access}/rate-limit.test.ts`] },
  { path: `${access}/limit-exchange.ts`, tests: [`${access}/limit-exchange.test.ts`] },
  { path: `${access}/node-limits.ts`, tests: [`${access}/node-limits.test.ts`] },
  { path: `${format}/record.ts`, tests: [`${format}/record.test.ts`] },
  { path: `${format}/packed-report.ts`, tests: [`${format}/packed-report.test.ts`, `${format}/report-block.test.ts`] },
  { path: `${format}/report-block.ts`, tests: [`${format}/report-block.test.ts`] },
];

/** Test files, separated by commas, for `vitest.config.ts`. */
export const testsVariable = 'SEALPOST_MUTATION_TESTS';

/** The folder of tools, for `coverage-provider.ts`. */
export const toolsVariable = 'SEALPOST_MUTATION_TOOLS';
