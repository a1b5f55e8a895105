import * as AbiError from 'ox/AbiError';
import * as AbiItem from 'ox/AbiItem';
import * as AbiParameters from 'ox/AbiParameters';
import { expect, test } from 'vitest';
import { decodeVerifierError, verifierErrorItems } from './verifier-errors.ts';

const samples = { bytes32: `0x${'ab'.repeat(32)}`, uint256: 2n ** 255n + 3n, address: `0x${'cd'.repeat(20)}` } as const;

const signatureOf = ({ name, inputs }: (typeof verifierErrorItems)[number]) =>
  `${name}(${inputs.map(({ type }) => type).join(',')})`;

test.each(verifierErrorItems.map((item) => [signatureOf(item), item] as const))(
  'verifier error %s: named with its arguments, as ox encodes it',
  (signature, item) => {
    const { name, inputs } = item;
    const values = inputs.map(({ type }) => samples[type]);
    const data = `${AbiItem.getSelector(`error ${signature}`)}${AbiParameters.encode(inputs, values as never).slice(2)}`; // values of the types of inputs
    expect(decodeVerifierError(data)).toEqual({
      selector: AbiError.getSelector(item),
      name,
      args: Object.fromEntries(inputs.map(({ name: argument }, i) => [argument, values[i]])),
      advice: expect.stringMatching(/^[A-Zf].+\. .+\.$/),
    });
    expect(decodeVerifierError(`0x${data.slice(2).toUpperCase()}`).name).toBe(name);
  },
);

test('verifier errors: no signature is listed twice', () => {
  const signatures = verifierErrorItems.map(signatureOf);
  expect(new Set(signatures).size).toBe(signatures.length);
  expect(signatures).toContain('DigestInactive(bytes32)');
  expect(signatures).toContain('DigestInactive(bytes32,bytes32)');
});

test('verifier errors: a reason as text and a panic are decoded too', () => {
  const text = AbiParameters.encode([{ type: 'string' }], ['ERC20: insufficient allowance ✓']);
  expect(decodeVerifierError(`0x08c379a0${text.slice(2)}`)).toMatchObject({
    name: 'Error',
    args: { reason: 'ERC20: insufficient allowance ✓' },
  });
  expect(decodeVerifierError(`0x4e487b71${'11'.padStart(64, '0')}`)).toMatchObject({
    name: 'Panic',
    args: { code: 17n },
  });
});

test('verifier errors: a reason is read where its offset says, or not at all', () => {
  const word = (value: number): string => value.toString(16).padStart(64, '0');
  const decode = (...words: readonly string[]) => {
    const { name, args } = decodeVerifierError(`0x08c379a0${words.join('')}`);
    return name && args.reason;
  };
  const hello = Buffer.from('hello').toString('hex').padEnd(64, '0');
  expect(decode(word(32), word(5), hello)).toBe('hello');
  expect(decode(word(64), word(9), word(5), hello)).toBe('hello');
  expect(decode(word(0), word(5), hello), 'the offset is the length').toBe('');
  const cut = [[], [word(32)], [word(32), word(5).slice(2)], [word(32), word(33), hello], [word(96), word(5), hello]];
  expect(cut.map((words) => decode(...words))).toEqual(cut.map(() => undefined));
  expect(decode('f'.repeat(64), word(5), hello)).toBe(undefined);
});

test('verifier errors: unknown data has its selector', () => {
  const unknown = { name: undefined, args: {} };
  expect(decodeVerifierError('0xDEADBEEF00')).toMatchObject({ ...unknown, selector: '0xdeadbeef' });
  expect(decodeVerifierError('0xdeadbeef').advice).toContain('0xdeadbeef is not one of the verifier’s.');
  expect(decodeVerifierError('0x')).toMatchObject({ ...unknown, selector: '0x' });
  expect(decodeVerifierError('0x').advice).toContain('pass a fee token');
  for (const data of ['0xb151802b', '0xb151802b00', '0x08c379a0', `0x08c379a0${'f'.repeat(128)}`])
    expect(decodeVerifierError(data)).toMatchObject({ ...unknown, selector: data.slice(0, 10) });
});

test('verifier errors: what is not hex is rejected by name', () => {
  for (const data of ['', 'x', '0x1', '0xzz', undefined as unknown as string])
    expect(() => decodeVerifierError(data)).toThrow(
      /^data is .*, expected the data of a reverted call, 0x and an even/,
    );
});
