// The command `sealpost sign`: the headers of one request, in a form that curl takes.

import type { PlainCommand } from '../command.ts';
import { accessOptions, readAccess } from '../credentials.ts';
import { usageError } from '../failure.ts';
import { serverAddress } from '../remote-client.ts';

export const signCommand: PlainCommand = {
  name: 'sign',
  summary: 'Sign one request and print it as a curl config file. The signature is valid for 5 seconds.',
  arguments: [
    { name: '<METHOD>', help: 'HTTP method, such as GET' },
    { name: '<TARGET>', help: 'path and query exactly as sent, such as /api/v1/feeds' },
  ],
  options: [
    { flag: '--headers', help: 'print the three headers only, one per line' },
    { flag: '--json', help: 'print url, method and headers as one line of JSON' },
    { flag: '--skew <seconds>', help: 'sign with a clock that is so far ahead, or behind if negative', default: '0' },
    { flag: '--body <text>', help: 'sign this body instead of an empty one; curl does not send it' },
    ...accessOptions,
  ],
  examples: [
    ['List readable streams', 'curl --config <(sealpost sign GET /api/v1/feeds)'],
    [
      'Read the latest report of a stream',
      'curl --config <(sealpost sign GET "/api/v1/reports/latest?feedID=0x0003…" --profile main)',
    ],
  ],
  run: async ({ session, options, print }, rawMethod: string, target: string) => {
    const method = rawMethod.toUpperCase(); // what is signed is what curl sends
    if (options.headers && options.json) throw usageError('--headers cannot be combined with --json.');
    if (!/^[A-Z]+$/.test(method))
      throw usageError(`METHOD is ${JSON.stringify(rawMethod)}, expected letters only, such as GET.`);
    if (!/^\/[!"$-~]*$/.test(target))
      throw usageError(
        'TARGET must start with / and have only printable ASCII without spaces or #. Percent-encode the rest.',
      );
    const skewMs = parseSkewMs(String(options.skew));
    const access = await readAccess(session, options);
    const body = options.body === undefined ? undefined : String(options.body);
    const headers = access.sign(method, target, session.nowMs() + skewMs, body);
    const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
    const url = `${serverAddress(access.url)}${target}`;
    await print(
      { url, method, headers },
      `${(options.headers ? lines : toCurlConfig(method, url, lines)).join('\n')}\n`,
    );
  },
};

const skewMaxSeconds = 86_400;

const parseSkewMs = (raw: string): number => {
  const seconds = /^-?\d{1,5}(\.\d{1,3})?$/.test(raw) ? Number(raw) : Number.NaN;
  if (Math.abs(seconds) <= skewMaxSeconds) return Math.round(seconds * 1_000);
  throw usageError(`--skew has the value "${raw}", expected seconds from -${skewMaxSeconds} to ${skewMaxSeconds}.`);
};

/** Lines of a curl config; without the first two curl would shorten dots and expand braces, which are signed as they are. */
const toCurlConfig = (method: string, url: string, headers: readonly string[]): readonly string[] => [
  'path-as-is',
  'globoff',
  ...(method === 'GET' ? [] : [method === 'HEAD' ? 'head' : `request = ${quote(method)}`]),
  `url = ${quote(url)}`,
  ...headers.map((header) => `header = ${quote(header)}`),
];

const quote = (text: string): string => `"${text.replace(/["\\]/g, '\\$&')}"`;
