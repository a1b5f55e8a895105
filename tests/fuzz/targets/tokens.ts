// Short texts that clients hand back or paste: event IDs and revert data of the verifier contracts. The first byte chooses which.
import assert from 'node:assert/strict';
import { SealpostError } from '@sealpost/client';
import { decodeVerifierError, verifierAbi, verifierProxyAbi } from '@sealpost/client/onchain';
import { ApiError } from '@sealpost/protocol';
import { decodeErrorResult } from 'viem';
import { createEventIds } from '../../../server/src/live/event-id.ts';
import { outcomeOf, requireSame, shapeOf, type Target } from '../target.ts';

const ids = createEventIds({ epoch: Buffer.from('0123456789ab', 'hex'), key: Buffer.alloc(16, 7) });
const issued = new Map([0, 1, 255, 2 ** 32, 2 ** 48 - 1].map((position) => [ids.encode(position), position]));

const runEventId = (text: string): string => {
  const read = outcomeOf(() => ids.parse(text), [ApiError]);
  if ('error' in read) return `event ID ${shapeOf(read.error.message)}`;
  if (typeof read.value !== 'number') return `event ID ${read.value}`;
  // 22 characters have four bits more than a block: what decodes to the same block is the same position.
  const known = [...issued].find(([id]) => Buffer.from(id, 'base64url').equals(Buffer.from(text, 'base64url')));
  assert.equal(known?.[1], read.value, 'a position that was never issued');
  return 'event ID accepted';
};

const abi = [...verifierAbi, ...verifierProxyAbi];

const runRevert = (text: string): string => {
  const read = outcomeOf(() => decodeVerifierError(text), [SealpostError]);
  if ('error' in read) return `revert ${shapeOf(read.error.message)}`;
  const { name, args } = read.value;
  if (name === undefined) return 'revert unknown';
  // viem, which is laxer about what follows the arguments, reads the same of all that we accept.
  const byViem = outcomeOf(() => decodeErrorResult({ abi, data: text.toLowerCase() as `0x${string}` }), [Error]);
  if ('value' in byViem && byViem.value.errorName === name && byViem.value.args !== undefined) {
    const lower = (one: unknown): unknown =>
      typeof one === 'string' ? one.toLowerCase() : typeof one === 'number' ? BigInt(one) : one;
    requireSame(
      Object.values(args).map(lower),
      (byViem.value.args as readonly unknown[]).map(lower),
      `viem reads other arguments of ${name}`,
    );
  }
  return `revert ${name} ${Object.keys(args).join()}`;
};

const word = (value: number): string => value.toString(16).padStart(64, '0');
const reverts = [
  '0x',
  `0x08c379a0${word(32)}${word(5)}${Buffer.from('hello').toString('hex').padEnd(64, '0')}`,
  `0x4e487b71${word(0x11)}`,
  ...abi
    .flatMap((item) => (item.type === 'error' ? [item.inputs.length] : []))
    .map((inputs, i) => `0x${i.toString(16).padStart(8, '0')}${word(1).repeat(inputs)}`),
];

export const openTokens = async (): Promise<Target> => ({
  seeds: [...[...issued.keys(), '12', ''].map((id) => `e${id}`), ...reverts.map((data) => `r${data}`)].map((text) =>
    Buffer.from(text),
  ),
  words: ['0x', '-', '_', '=', '08c379a0', '4e487b71', word(32), word(1), 'ff'.repeat(32)],
  run: (input) => (input[0] === 0x65 ? runEventId : runRevert)(input.subarray(1).toString()),
});
