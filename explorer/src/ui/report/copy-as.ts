// Commands that read or verify a report outside of this page. They contain no secret: user ID and secret come from the environment, and
// the request is signed when the command runs, so it never expires.
import { routes } from '@sealpost/protocol';
import { fromClone } from '../code-samples.ts';

export type CopyForm = {
  readonly id: string;
  readonly title: string;
  readonly text: string;
  /** Its prerequisites. */
  readonly needs: string;
};

const needsKeys = 'Needs SEALPOST_USER_ID and SEALPOST_SECRET in the environment';
const needsCommand = `the command sealpost ${fromClone}`;
const needsClient = `the package @sealpost/client ${fromClone}`;
const needsSigners = 'signers.json with the signers that you trust, as the oracle network publishes them';

/** How to read the report of a stream at a second. */
export function readingForms(origin: string, feedId: string, timestamp: number): readonly CopyForm[] {
  const target = `${routes.reportAt.path}?feedID=${feedId}&timestamp=${timestamp}`;
  return [
    {
      id: 'curl',
      title: 'curl',
      text: `curl -s --config <(sealpost sign GET '${target}' --url ${origin})`,
      needs: `${needsKeys}; ${needsCommand}. Run it in bash or zsh; it signs the request when it runs.`,
    },
    {
      id: 'typescript',
      title: 'TypeScript',
      text: `import { readFileSync } from 'node:fs';
import { createClient, verify } from '@sealpost/client';

const { SEALPOST_USER_ID: userId, SEALPOST_SECRET: secret } = process.env;
const client = createClient({ baseUrl: '${origin}', userId, secret });
const { report } = await client.at('${feedId}', ${timestamp});
const signers = JSON.parse(readFileSync('signers.json', 'utf8'));
const verdict = verify(report, signers);
console.log(verdict.ok ? verdict.decoded?.priceText : verdict.message);
`,
      needs: `${needsKeys}; ${needsClient}; ${needsSigners}.`,
    },
    {
      id: 'cli',
      title: 'CLI',
      text: `sealpost report at ${feedId} --timestamp ${timestamp} --url ${origin}`,
      needs: `${needsKeys}; ${needsCommand}.`,
    },
  ];
}

/** How to verify a report you have, without asking a server. */
export const checkingForms = (fullReport: string): readonly CopyForm[] => [
  {
    id: 'typescript',
    title: 'TypeScript',
    text: `import { readFileSync } from 'node:fs';
import { verify } from '@sealpost/client';

const signers = JSON.parse(readFileSync('signers.json', 'utf8'));
const verdict = verify('${fullReport}', signers);
console.log(verdict.ok ? verdict.decoded?.priceText : verdict.message);
`,
    needs: `Needs no account, but ${needsClient}; ${needsSigners}.`,
  },
  {
    id: 'cli',
    title: 'CLI',
    text: `sealpost report verify ${fullReport} --signers signers.json`,
    needs: `Needs no account, but ${needsCommand}; ${needsSigners}.`,
  },
];
