import { expect, test } from 'vitest';
import { checkingForms, readingForms } from './copy-as.ts';

const feedId = `0x0003${'1'.repeat(60)}`;
const origin = 'http://127.0.0.1:7401';

const textOf = (forms: ReturnType<typeof readingForms>, id: string) => forms.find((form) => form.id === id)?.text;

test('copy as: curl signs the exact target when it runs', () => {
  expect(textOf(readingForms(origin, feedId, 1_700_000_000), 'curl')).toBe(
    `curl -s --config <(sealpost sign GET '/api/v1/reports?feedID=${feedId}&timestamp=1700000000' --url http://127.0.0.1:7401)`,
  );
});

test('copy as: the CLI command has stream, time and server', () => {
  expect(textOf(readingForms(origin, feedId, 1_700_000_000), 'cli')).toBe(
    `sealpost report at ${feedId} --timestamp 1700000000 --url http://127.0.0.1:7401`,
  );
});

test('copy as: TypeScript takes the keys from the environment and verifies what it reads', () => {
  const text = textOf(readingForms(origin, feedId, 1_700_000_000), 'typescript') ?? '';
  expect(text).toContain('SEALPOST_USER_ID: userId, SEALPOST_SECRET: secret } = process.env');
  expect(text).toContain(`client.at('${feedId}', 1700000000)`);
  expect(text).toContain("JSON.parse(readFileSync('signers.json', 'utf8'))");
  expect(text).toContain('verify(report, signers)');
});

test('copy as: a pasted report is verified without an account', () => {
  const forms = checkingForms('0x1234');
  expect(textOf(forms, 'cli')).toBe('sealpost report verify 0x1234 --signers signers.json');
  for (const { text, needs } of forms) {
    expect(text).not.toContain('SEALPOST_');
    expect(text).not.toContain('http'); // a server that is checked does not say whose signatures count
    expect(needs).toMatch(/^Needs no account, but .*; signers\.json /);
  }
});
