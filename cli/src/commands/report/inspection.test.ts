import { type SignerSets, toSignerSetsJson } from '@sealpost/protocol';
import { createNetwork } from '@sealpost/simulator';
import { afterAll, describe, expect, test } from 'vitest';
import {
  undecodedBody,
  undecodedLayouts,
  undecodedStream,
} from '../../../../tests/support/exports/undecoded-bodies.ts';
import {
  btc,
  fastReport,
  first,
  hexOf,
  nowMs,
  openReadingSample,
  second,
  signerSets,
  wire,
} from '../../reading-sample.fixture.ts';

const { service, file, run, close } = await openReadingSample();
afterAll(close);

const signersFile = (name: string, sets: SignerSets) => file(name, JSON.stringify(toSignerSetsJson(sets)));
const changeDigit = (hex: string, at: number) =>
  `${hex.slice(0, at)}${hex[at] === '0' ? '1' : '0'}${hex.slice(at + 1)}`;

describe('report decode and verify', () => {
  test('decode shows context, fields with type and unit, the window and the signers', async () => {
    const { code, stdout } = await run(['report', 'decode', hexOf(first)], { env: {} });
    const [signerSet] = [...signerSets.values()];
    expect(code).toBe(0);
    expect(stdout).toContain('schema           version 3, Crypto advanced\n');
    expect(stdout).toContain(`config digest    ${signerSet?.configDigest}\n`);
    expect(stdout).toContain(
      'valid (UTC)      2025-11-15T09:45:40Z to 2025-11-15T09:45:49Z, expires 2025-12-15T09:45:49Z\n',
    );
    expect(stdout).toMatch(/^price +int192 +price +97012345678901234567890 +97012\.34567890123456789$/m);
    expect(stdout).toMatch(/^nativeFee +uint192 +native token +1 +0\.000000000000000001$/m);
    expect(stdout).toMatch(/^expiresAt +uint32 +stream time +1765791949 +2025-12-15T09:45:49Z$/m);
    expect(stdout).toContain(`${(signerSet?.f ?? 0) + 1} signatures, recovered signers:\n`);
    for (const [, address] of stdout.matchAll(/^ {2}\d+ {2}(0x\w+)$/gm))
      expect(signerSet?.addresses).toContain(address);
  });

  test('decode --json has integers as strings, for each line of hex or JSON', async () => {
    const stdin = `${hexOf(first)}\n\n${wire(second)}\n{"report":${wire(fastReport)}}`;
    const { stdout } = await run(['report', 'decode', '--json'], { stdin, env: {} });
    const [one, two, three] = stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect(one).toMatchObject({ feedID: btc, version: '3', window: { validFrom: '2025-11-15T09:45:40Z' } });
    expect(one.fields[6]).toEqual({ name: 'price', type: 'int192', unit: 'price', value: '97012345678901234567890' });
    expect(two.fields[6].value).toBe('97000000000000000000000');
    expect(three.fields[1]).toEqual({
      name: 'validFromTimestamp',
      type: 'uint64',
      unit: 'stream time',
      value: String(nowMs - 349),
    });
    expect(three.window.observations).toBe('2025-11-15T09:46:40.023Z');
  });

  test.each(undecodedLayouts)(
    'decode shows what is known of %s: its head, and why there is no more',
    async (layout) => {
      const { sign } = await createNetwork({ seed: 'tests' });
      const body = undecodedBody(layout, { validFrom: 1_763_200_000, observations: 1_763_200_004 });
      const hex = sign(body, 1);
      const { code, stdout } = await run(['report', 'decode', hex], { env: {} });
      expect(code).toBe(0);
      expect(stdout).toMatch(/^schema +version \d+, unknown schema$/m);
      expect(stdout).toContain('2025-11-15T09:46:40Z to 2025-11-15T09:46:44Z, expires 2025-12-15T09:46:44Z\n');
      expect(stdout).toMatch(/^expiresAt +uint32/m);
      expect(stdout).toMatch(
        /^Other fields are not decoded \(unknown_schema\): .+\. The body as signed:\n0x[0-9a-f]+$/m,
      );
      const shown = JSON.parse((await run(['report', 'decode', '--json', hex], { env: {} })).stdout);
      expect(shown).toMatchObject({ feedID: undecodedStream(layout), title: null, code: 'unknown_schema', body });
      expect(shown.fields).toHaveLength(6);
      expect(shown.signers).toHaveLength(2);
      const verified = await run(['report', 'verify', hex, '--signers', signersFile('signers.json', signerSets)], {
        env: {},
      });
      expect([verified.code, verified.stdout.startsWith('✓')]).toEqual([0, true]);
    },
  );

  test.each([
    ['0x12zz', 1, 'REPORT is not a valid report (malformed_hex)'],
    ['0x1234', 1, 'REPORT is not a valid report (malformed_envelope)'],
    ['no-such-file', 2, 'No such file: no-such-file'],
    ['-', 2, 'No report to decode.'],
  ])('decode %s: exit code %i', async (source, code, text) => {
    const ran = await run(['report', 'decode', source], { env: {} });
    expect([ran.code, ran.stdout]).toEqual([code, '']);
    expect(ran.stderr).toContain(text);
  });

  test('verify takes signers from a file or a server', async () => {
    const reports = file('reports.ndjson', `${wire(first)}\n${wire(second)}\n`);
    for (const signers of [signersFile('signers.json', signerSets), service.url]) {
      const ran = await run(['report', 'verify', reports, '--signers', signers], { env: {} });
      expect([
        ran.code,
        ran.stdout.match(/^✓ 0x0003\w+ is signed by \d+ signers of 0x\w+ \(f = \d+\)\.$/gm)?.length,
      ]).toEqual([0, 2]);
    }
  });

  test('verify shows the reason and the invalid signature, and exits with 1', async () => {
    const signers = signersFile('signers.json', signerSets);
    const at = 2 + 64 * (8 + 6) + 63; // last digit of the price
    const changed = changeDigit(hexOf(first), at);
    const ran = await run(['report', 'verify', '-', '--signers', signers], {
      stdin: `${changed}\n${hexOf(first)}\n`,
      env: {},
    });
    expect(ran.code).toBe(1);
    expect(ran.stdout).toMatch(
      /^✗ \w+ does not verify \(altered_report\): No signature is from a registered signer.*\n✓ /,
    );
    const [stdin, unread] = [`${hexOf(first)}\n${changed}\n`, { env: {}, isUnread: true }];
    expect((await run(['report', 'verify', '-', '--signers', signers], { stdin, ...unread })).code).toBe(1);
    const broken = changeDigit(hexOf(first), hexOf(first).length - 1); // of the last s
    const foreign = await run(['report', 'verify', broken, '--signers', signers, '--json'], { env: {} });
    const count = [...signerSets.values()].map(({ f }) => f)[0] ?? 0;
    expect(foreign.code).toBe(1);
    expect(JSON.parse(foreign.stdout)).toMatchObject({
      ok: false,
      reason: expect.stringMatching(/unregistered_signer|malformed_signature/),
      signatureIndex: count,
    });
  });

  test('verify against other signers says that the config digest is unknown', async () => {
    const signers = file('none.json', '{}');
    const ran = await run(['report', 'verify', hexOf(first), '--signers', signers, '--json'], { env: {} });
    expect([ran.code, JSON.parse(ran.stdout).reason]).toEqual([1, 'unknown_config_digest']);
    expect((await run(['report', 'verify', hexOf(first), '--signers', file('bad.json', '[]')], { env: {} })).code).toBe(
      2,
    );
  });
});
