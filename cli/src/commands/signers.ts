// The command `sealpost signers`: who may sign reports. A retired set verifies history but admits no new report.
import { SealpostError, setConfigCalldata, verifierFunctions } from '@sealpost/client/onchain';
import { formatDate, parseSignerSet, parseSignerSets, type SignerSet } from '@sealpost/protocol';
import type { AdminStore, RegisteredSignerSet } from '@sealpost/server/store/store';
import { type ChangeSummary, changeRecords, renderSummary } from '../admin-change.ts';
import type { CommandGroup, SettingsCommand } from '../command.ts';
import { collected, parseCount, readJsonFile } from '../command-options.ts';
import { asUsage, CommandError, exitCodes, usageError } from '../failure.ts';
import { formatNumberOf, renderTable } from '../formats.ts';
import type { Session } from '../session.ts';
import { loadSignerSets } from './report/inspection.ts';

const add: SettingsCommand = {
  name: 'add',
  summary: 'Register a signer set: any f + 1 of its addresses make a quorum.',
  arguments: [{ name: '<CONFIG_DIGEST>', help: '0x and 64 hex digits, as in the context of the reports' }],
  options: [
    {
      flag: '-f, --faulty <count>',
      help: 'number of oracles that may fail; f + 1 sign each report',
      required: true,
    },
    {
      flag: '--address <list>',
      help: 'signing addresses, separated by commas; repeatable',
      required: true,
      repeatable: true,
    },
    { flag: '--json', help: 'print the set as one line of JSON' },
  ],
  settings: ['store'],
  examples: [
    ['Four oracles, two of which sign', 'sealpost signers add 0x0009… -f 1 --address 0xed50…,0x94bd…,0xce9b…,0xb9a1…'],
  ],
  run: async ({ session, options, withNewStore, print }, digest: string) => {
    const f = parseCount('--faulty', String(options.faulty), 0, 10);
    const addresses = collected(options.address)?.flatMap((list) => list.split(','));
    const set = asUsage(() => parseSignerSet(digest, { f, addresses }, 'signers'));
    const registered = register(set, session.nowMs());
    await withNewStore(({ admin }) =>
      changeRecords(session, admin, {
        kind: 'signerSet',
        keys: [set.configDigest],
        plan: ([current]) => {
          if (current === undefined) return [registered];
          throw new CommandError(
            exitCodes.refused,
            `${set.configDigest} is already registered. See: sealpost signers list.`,
          );
        },
        action: 'signers.add',
      }),
    );
    await print(registered, `Signer set ${registered.configDigest} registered.\n`);
  },
};

const register = (set: SignerSet, nowMs: number): RegisteredSignerSet => ({
  ...set,
  addedAt: formatDate(nowMs),
  retiredAt: null,
});

const list: SettingsCommand = {
  name: 'list',
  summary: 'List all signer sets, including retired ones.',
  options: [{ flag: '--json', help: 'print one line of JSON, config digest → set' }],
  settings: ['store'],
  examples: [['List signer sets', 'sealpost signers list']],
  run: async ({ session, withStore, print }) => {
    const sets = await withStore(({ admin }) => admin.list('signerSet'));
    const columns = [
      { title: 'config digest' },
      { title: 'f', align: 'right' },
      { title: 'oracles', align: 'right' },
      { title: 'added' },
      { title: 'retired' },
    ] as const;
    const rows = sets.map(({ configDigest, f, addresses, addedAt, retiredAt }) => [
      configDigest,
      `${f}`,
      `${addresses.length}`,
      addedAt,
      retiredAt ?? '',
    ]);
    await print(
      Object.fromEntries(sets.map(({ configDigest, ...set }) => [configDigest, set])),
      `${renderTable(columns, rows, session.paint)}${formatNumberOf(sets.length, 'signer set')}.\n`,
    );
  },
};

const retire: SettingsCommand = {
  name: 'retire',
  summary: 'Retire a signer set permanently: reports it signed stay valid, new ones are rejected.',
  arguments: [{ name: '<CONFIG_DIGEST>', help: '0x and 64 hex digits' }],
  options: [{ flag: '--json', help: 'print the set as one line of JSON' }],
  settings: ['store'],
  examples: [['After the oracles have moved to a new set', 'sealpost signers retire 0x0009…']],
  run: async ({ session, withStore, print }, rawDigest: string) => {
    const digest = rawDigest.toLowerCase();
    const retiredAt = formatDate(session.nowMs());
    const retired = await withStore(async ({ admin }) => {
      const plan = ([current]: readonly (RegisteredSignerSet | undefined)[]): readonly RegisteredSignerSet[] => {
        if (current === undefined)
          throw usageError(`${digest} is not registered. List signer sets with: sealpost signers list.`);
        if (current.retiredAt === null) return [{ ...current, retiredAt }];
        throw new CommandError(exitCodes.refused, `${digest} was already retired at ${current.retiredAt}.`);
      };
      await changeRecords(session, admin, { kind: 'signerSet', keys: [digest], plan, action: 'signers.retire' });
      return admin.get('signerSet', digest);
    });
    if (retired !== undefined) await print(retired, `Signer set ${retired.configDigest} retired.\n`);
  },
};

const importSets: SettingsCommand = {
  name: 'import',
  summary: 'Register the signer sets of a file, all or none. Known sets are updated; retired ones stay retired.',
  arguments: [{ name: '<FILE>', help: 'signers.json, as sealpost simulate writes it or a server publishes it' }],
  options: [{ flag: '--json', help: 'print what was added and changed as one line of JSON' }],
  settings: ['store'],
  examples: [['Import the oracles of a simulated network', 'sealpost signers import ./hour/signers.json']],
  run: async ({ session, withNewStore, print }, file: string) => {
    const sets = [...parseSignerSets(await readJsonFile(file), file).values()];
    const summary = await withNewStore(({ admin }) => registerSignerSets(session, admin, sets, { file }));
    await print(summary, renderSummary(summary));
  },
};

/** Registers signer sets in a store, all or none; retired ones stay retired. */
export function registerSignerSets(
  session: Pick<Session, 'nowMs' | 'actor'>,
  admin: AdminStore,
  sets: readonly SignerSet[],
  detail: Readonly<Record<string, unknown>>,
): Promise<ChangeSummary> {
  const plan = (current: readonly (RegisteredSignerSet | undefined)[]): readonly RegisteredSignerSet[] =>
    sets.map((set, i) => ({ ...register(set, session.nowMs()), ...current[i], ...set }));
  const keys = sets.map(({ configDigest }) => configDigest);
  return changeRecords(session, admin, { kind: 'signerSet', keys, plan, action: 'signers.import', detail });
}

const calldata: SettingsCommand = {
  name: 'calldata',
  summary: 'Print the calldata that registers a signer set on-chain: setConfig of Verifier 2.0.0.',
  arguments: [{ name: '[CONFIG_DIGEST]', help: '0x and 64 hex digits (default: the only set that is not retired)' }],
  options: [
    {
      flag: '--signers <file|url>',
      help: 'signers.json, or the URL of a server that publishes it (default: the store)',
    },
    { flag: '--json', help: 'print function, config digest and calldata as one line of JSON' },
  ],
  settings: ['store'],
  examples: [
    ['Register a set of the store', 'sealpost signers calldata 0x0009…'],
    ['Register the set of a server', 'sealpost signers calldata --signers https://streams.example.com'],
  ],
  run: async ({ session, options, withStore, print }, digest?: string) => {
    const sets =
      options.signers === undefined
        ? await withStore(({ admin }) => admin.list('signerSet'))
        : [...(await loadSignerSets(session, String(options.signers))).values()];
    const set = pickSignerSet(sets, digest?.toLowerCase());
    const encoded = encodeRegistration(set);
    const { signature } = verifierFunctions.setConfig;
    await print({ function: signature, configDigest: set.configDigest, calldata: encoded }, `${encoded}\n`);
  },
};

/** The set that is named, or the only one that is not retired. */
const pickSignerSet = (sets: readonly (SignerSet | RegisteredSignerSet)[], digest: string | undefined): SignerSet => {
  const active = sets.filter((set) => !('retiredAt' in set) || set.retiredAt === null);
  const [found, another] = digest === undefined ? active : sets.filter(({ configDigest }) => configDigest === digest);
  if (found !== undefined && another === undefined) return found;
  if (digest !== undefined)
    throw usageError(
      `${digest} is not among the signer sets: ${sets.map(({ configDigest }) => configDigest).join(', ') || 'none'}.`,
    );
  throw usageError(
    found === undefined
      ? 'There is no active signer set. Register one with: sealpost signers import signers.json.'
      : `Give the config digest of one signer set: ${active.map(({ configDigest }) => configDigest).join(', ')}.`,
  );
};

const encodeRegistration = (set: SignerSet): string => {
  try {
    return setConfigCalldata(set);
  } catch (error) {
    throw error instanceof SealpostError ? new CommandError(exitCodes.refused, error.message, { cause: error }) : error;
  }
};

export const signersCommands: CommandGroup = {
  name: 'signers',
  summary: 'Manage signer sets: add, list, retire, import, calldata.',
  commands: [add, list, retire, importSets, calldata],
};
