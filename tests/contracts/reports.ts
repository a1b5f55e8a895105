// Really signed reports of every schema version, from networks of several sizes.
import {
  encodeReportBody,
  type Field,
  type Hex,
  reportSchemas,
  type SchemaVersion,
  type SignerSet,
} from '@sealpost/protocol';
import { createNetwork, type Network } from '@sealpost/simulator';
import type { Random } from '../support/random.ts';

const versions = Object.keys(reportSchemas).map(Number) as SchemaVersion[];

const hexDigits = (random: Random, count: number): string =>
  Array.from({ length: count }, () => random(16).toString(16)).join('');

const createValue = (random: Random, { type }: Field, isMilliseconds: boolean): unknown => {
  if (type === 'bytes32') return `0x${hexDigits(random, 64)}`;
  if (type === 'time') return 1_763_200_000 * (isMilliseconds ? 1_000 : 1) + random(1_000_000);
  if (type === 'uint32') return random(2 ** 32);
  const bits = type === 'uint64' ? 64 : random(2) === 0 ? 80 : 191; // mostly prices, also the largest
  const value = BigInt(`0x${hexDigits(random, Math.floor(bits / 4))}`);
  return type === 'int192' && random(4) === 0 ? -value : value;
};

/** A body of any schema and resolution, every field within its type. */
export const createBody = (random: Random): Hex => {
  const version = versions[random(versions.length)] as SchemaVersion; // an index of the list
  const isMilliseconds = random(4) === 0;
  const { fields } = reportSchemas[version];
  const values = fields.map((field: Field) => [field.name, createValue(random, field, isMilliseconds)] as const);
  const feedId = `0x${isMilliseconds ? '1' : '0'}${version.toString(16).padStart(3, '0')}${hexDigits(random, 60)}`;
  return encodeReportBody({ version, ...Object.fromEntries(values), feedId } as never);
};

export type Networks = { readonly networks: readonly Network[]; readonly signerSets: readonly SignerSet[] };

/** Networks of 4, 7, 16 and 31 oracles, with f of 1, 2, 5 and 10. */
export const createNetworks = async (): Promise<Networks> => {
  const sizes = [
    [4, 1],
    [7, 2],
    [16, 5],
    [31, 10],
  ] as const;
  const networks = await Promise.all(sizes.map(([n, f]) => createNetwork({ seed: 'contracts', n, f })));
  return { networks, signerSets: networks.map(({ signerSet }) => signerSet) };
};
