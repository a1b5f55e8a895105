// The command `sealpost signers`: who may sign reports. A retired set verifies history but admits no new report.
import { formatDate, parseSignerSet, parseSignerSets, type SignerSet } from '@sealpost/protocol';
import type { Command } from 'commander';
import type { AdminStore, RegisteredSignerSet } from '../../store/store.ts';
import { type ChangeSummary, changeRecords, renderSummary } from '../admin-change.ts';
import {
  addExamples,
  addSettings,
  parseCount,
  type RawOptions,
  readJsonFile,
  readSettings,
} from '../command-options.ts';
import { asUsage, CommandError, exitCodes, usageError } from '../failure.ts';
import { formatNumberOf, renderTable } from '../formats.ts';
import { printJson, type Session } from '../session.ts';
import { withNewStore, withStore } from '../store-access.ts';

export const addSignersCommand = (program: Command, session: Session): void => {
  const signers = program.command('signers').description('Manage signer sets: add, list, retire, import.');
  addAdd(signers, session);
  addList(signers, session);
  addRetire(signers, session);
  addImport(signers, session);
};

const collect = (value: string, previous: readonly string[] = []): readonly string[] => [
  ...previous,
  ...value.split(','),
];

const addAdd = (parent: Command, session: Session): void => {
  const command = parent
    .command('add')
    .description('Register a signer set: any f + 1 of its addresses make a quorum.')
    .argument('<CONFIG_DIGEST>', '0x and 64 hex digits, as in the context of the reports')
    .requiredOption('-f, --faulty <count>', 'number of oracles that may fail; f + 1 sign each report')
    .requiredOption('--address <list>', 'signing addresses, separated by commas; repeatable', collect)
    .option('--json', 'print the set as one line of JSON')
    .action((digest: string, options: RawOptions) => addOne(session, digest, options));
  addSettings(command, ['store']);
  addExamples(command, [
    ['Four oracles, two of which sign', 'sealpost signers add 0x0009… -f 1 --address 0xed50…,0x94bd…,0xce9b…,0xb9a1…'],
  ]);
};

const addOne = async (session: Session, digest: string, options: RawOptions): Promise<void> => {
  const { values } = await readSettings(session, options);
  const f = parseCount('--faulty', String(options.faulty), 0, 10);
  const set = asUsage(() => parseSignerSet(digest, { f, addresses: options.address }, 'signers'));
  const registered = register(set, session.nowMs());
  await withNewStore(values.store, ({ admin }) =>
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
  await printSet(session, options, registered, 'registered');
};

const register = (set: SignerSet, nowMs: number): RegisteredSignerSet => ({
  ...set,
  addedAt: formatDate(nowMs),
  retiredAt: null,
});

const printSet = (session: Session, { json }: RawOptions, set: RegisteredSignerSet, what: string): Promise<void> =>
  json ? printJson(session, set) : session.write(`Signer set ${set.configDigest} ${what}.\n`);

const addList = (parent: Command, session: Session): void => {
  const command = parent
    .command('list')
    .description('List all signer sets, including retired ones.')
    .option('--json', 'print one line of JSON, config digest → set')
    .action((options: RawOptions) => listSets(session, options));
  addSettings(command, ['store']);
  addExamples(command, [['List signer sets', 'sealpost signers list']]);
};

const listSets = async (session: Session, options: RawOptions): Promise<void> => {
  const { values } = await readSettings(session, options);
  const sets = await withStore(values.store, ({ admin }) => admin.list('signerSet'));
  if (options.json)
    return printJson(session, Object.fromEntries(sets.map(({ configDigest, ...set }) => [configDigest, set])));
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
  await session.write(`${renderTable(columns, rows, session.paint)}${formatNumberOf(sets.length, 'signer set')}.\n`);
};

const addRetire = (parent: Command, session: Session): void => {
  const command = parent
    .command('retire')
    .description('Retire a signer set permanently: reports it signed stay valid, new ones are rejected.')
    .argument('<CONFIG_DIGEST>', '0x and 64 hex digits')
    .option('--json', 'print the set as one line of JSON')
    .action((digest: string, options: RawOptions) => retire(session, digest, options));
  addSettings(command, ['store']);
  addExamples(command, [['After the oracles have moved to a new set', 'sealpost signers retire 0x0009…']]);
};

const retire = async (session: Session, rawDigest: string, options: RawOptions): Promise<void> => {
  const { values } = await readSettings(session, options);
  const digest = rawDigest.toLowerCase();
  const retiredAt = formatDate(session.nowMs());
  const retired = await withStore(values.store, async ({ admin }) => {
    const plan = ([current]: readonly (RegisteredSignerSet | undefined)[]): readonly RegisteredSignerSet[] => {
      if (current === undefined)
        throw usageError(`${digest} is not registered. List signer sets with: sealpost signers list.`);
      if (current.retiredAt === null) return [{ ...current, retiredAt }];
      throw new CommandError(exitCodes.refused, `${digest} was already retired at ${current.retiredAt}.`);
    };
    await changeRecords(session, admin, { kind: 'signerSet', keys: [digest], plan, action: 'signers.retire' });
    return admin.get('signerSet', digest);
  });
  if (retired !== undefined) await printSet(session, options, retired, 'retired');
};

const addImport = (parent: Command, session: Session): void => {
  const command = parent
    .command('import')
    .description('Register the signer sets of a file, all or none. Known sets are updated; retired ones stay retired.')
    .argument('<FILE>', 'signers.json, as sealpost simulate writes it or a server publishes it')
    .option('--json', 'print what was added and changed as one line of JSON')
    .action((file: string, options: RawOptions) => importSets(session, file, options));
  addSettings(command, ['store']);
  addExamples(command, [['Import the oracles of a simulated network', 'sealpost signers import ./hour/signers.json']]);
};

const importSets = async (session: Session, file: string, options: RawOptions): Promise<void> => {
  const { values } = await readSettings(session, options);
  const sets = [...parseSignerSets(await readJsonFile(file), file).values()];
  const summary = await withNewStore(values.store, ({ admin }) => registerSignerSets(session, admin, sets, { file }));
  await (options.json ? printJson(session, summary) : session.write(renderSummary(summary)));
};

/** Registers signer sets in a store, all or none; retired ones stay retired. */
export const registerSignerSets = (
  session: Pick<Session, 'nowMs' | 'actor'>,
  admin: AdminStore,
  sets: readonly SignerSet[],
  detail: Readonly<Record<string, unknown>>,
): Promise<ChangeSummary> => {
  const plan = (current: readonly (RegisteredSignerSet | undefined)[]): readonly RegisteredSignerSet[] =>
    sets.map((set, i) => ({ ...register(set, session.nowMs()), ...current[i], ...set }));
  const keys = sets.map(({ configDigest }) => configDigest);
  return changeRecords(session, admin, { kind: 'signerSet', keys, plan, action: 'signers.import', detail });
};
