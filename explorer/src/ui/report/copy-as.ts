// Commands that read or verify a report outside of this page. They contain no secret: user ID and secret come from the environment, and
// the request is signed when the command runs, so it never expires.
import { routes } from '@sealpost/protocol';

export type CopyForm = {
  readonly id: string;
  readonly title: string;
  readonly text: string;
  /** Its prerequisites. */
  readonly needs: string;
};

const needsKeys = 'Needs SEALPOST_USER_ID and SEALPOST_SECRET in the environment.';

/** How to read the report of a stream at a second. */
export const readingForms = (origin: string, feedId: string, timestamp: number): readonly CopyForm[] => {
  const target = `${routes.reportAt.path}?feedID=${feedId}&timestamp=${timestamp}`;
  return [
    {
      id: 'curl',
      title: 'curl',
      text: `curl -s --config <(npx sealpost sign GET '${target}' --url ${origin})`,
      needs: `${needsKeys} Run it in bash or zsh; it signs the request when it runs.`,
    },
    {
      id: 'typescript',
      title: 'TypeScript',
      text: `import { createClient, verify } from '@sealpost/client';

const { SEALPOST_USER_ID: userId, SEALPOST_SECRET: secret } = process.env;
const client = createClient({ baseUrl: '${origin}', userId, secret });
const { report } = await client.at('${feedId}', ${timestamp});
const { signers } = await client.signers();
const verdict = verify(report, signers);
console.log(verdict.ok ? verdict.decoded?.priceText : verdict.message);
`,
      needs: needsKeys,
    },
    {
      id: 'cli',
      title: 'CLI',
      text: `npx sealpost report at ${feedId} --timestamp ${timestamp} --url ${origin}`,
      needs: needsKeys,
    },
  ];
};

/** How to verify a report you have: only the signers come from the server, and no account is needed. */
export const checkingForms = (origin: string, fullReport: string): readonly CopyForm[] => [
  {
    id: 'curl',
    title: 'curl',
    text: `curl -s ${origin}${routes.signers.path} -o signers.json && npx sealpost report verify ${fullReport} --signers signers.json`,
    needs: 'Needs no account.',
  },
  {
    id: 'typescript',
    title: 'TypeScript',
    text: `import { createClient, verify } from '@sealpost/client';

const client = createClient({ baseUrl: '${origin}' });
const { signers } = await client.signers();
const verdict = verify('${fullReport}', signers);
console.log(verdict.ok ? verdict.decoded?.priceText : verdict.message);
`,
    needs: 'Needs no account.',
  },
  {
    id: 'cli',
    title: 'CLI',
    text: `npx sealpost report verify ${fullReport} --signers ${origin}`,
    needs: 'Needs no account.',
  },
];
