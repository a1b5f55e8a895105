// The command `sealpost store retain`: which retention applies to a store, what its nodes announce, and what waits; and to apply that at once.
import { hidePassword } from '@sealpost/server/runtime/urls';
import type { RetentionLimits } from '@sealpost/server/store/nodes';
import { confirmRetention, unconfirmedOf } from '@sealpost/server/store/retention';
import type { SettingsCommand } from '../../command.ts';
import { formatBytes, formatMoment, formatNumberOf, renderPairs } from '../../formats.ts';

export const retainCommand: SettingsCommand = {
  name: 'retain',
  summary:
    'Show the retention that applies: the longest that running nodes announce. A shorter one waits for a day before reports are deleted.',
  options: [
    { flag: '--now', help: 'apply what waits at once; running nodes delete within a minute, and it cannot be undone' },
    { flag: '--json', help: 'print one line of JSON' },
  ],
  settings: ['store'],
  examples: [
    ['What applies, and what waits', 'sealpost store retain'],
    ['Delete what a shorter retention no longer keeps', 'sealpost store retain --now'],
  ],
  run: async ({ session, options, settings, withStore, print }) => {
    const { applied, nodes } = await withStore(async ({ retention, keyHolders, admin }) => {
      const found = await retention.get();
      const confirmed = options.now === true ? unconfirmedOf(found) : undefined;
      if (confirmed !== undefined) {
        const act = { atMs: session.nowMs(), actor: session.actor(), action: 'store.retain' };
        await admin.log({ ...act, detail: { from: limitsJson(found), to: limitsJson(confirmed) } });
        // What waits by now may be lower than what was shown.
        await retention.update((current) => confirmRetention(current, confirmed));
      }
      return { applied: await retention.get(), nodes: await keyHolders.list() };
    });
    const store = hidePassword(settings.store);
    const { waiting, deletionFromMs } = applied ?? {};
    const from = waiting && formatMoment(waiting.fromMs);
    await print(
      {
        store,
        applies: limitsJson(applied),
        nodes: nodes.map(({ node, retention }) => ({ node, ...limitsJson(retention) })),
        waiting: waiting === undefined ? null : { ...limitsJson(waiting), from },
        deletionFrom: deletionFromMs === undefined ? null : formatMoment(deletionFromMs),
      },
      renderPairs([
        ['store', store],
        ['applies', describe(applied)],
        ...nodes.map(({ node, retention }) => [`announced by ${node}`, describe(retention)] as const),
        ['waiting', waiting === undefined ? 'nothing' : `${describe(waiting)}, from ${from} on`],
        ...(deletionFromMs === undefined ? [] : [['large deletion', describeStart(deletionFromMs)] as const]),
      ]),
    );
  },
};

const limitsJson = (limits: RetentionLimits | undefined) =>
  limits === undefined ? null : { retentionDays: limits.days, retentionBytes: limits.bytes };

const describeStart = (ms: number): string => (ms === 0 ? 'confirmed' : `from ${formatMoment(ms)} on`);

const describe = (limits: RetentionLimits | undefined): string =>
  limits === undefined
    ? 'unknown: no node of this release has run'
    : `${formatNumberOf(limits.days, 'day')}, ${limits.bytes === null ? 'unlimited bytes' : formatBytes(limits.bytes)}`;
