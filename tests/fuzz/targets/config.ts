// Settings from a config file, the environment and flags. An input is JSON: {"file": …, "env": {…}, "flags": {…}}.
import assert from 'node:assert/strict';
import { resolveSettings, rowOf, SettingError, settingNames } from '../../../server/src/config/config.ts';
import { holdsSecret, showSettings } from '../../../server/src/config/shown.ts';
import { outcomeOf, shapeOf, type Target } from '../target.ts';

const words = [
  ...settingNames,
  ...settingNames.map((name) => rowOf(name).env),
  ...settingNames.flatMap((name) => rowOf(name).defaultText ?? []),
  ...[
    '127.0.0.1:80',
    '[::1]:65535',
    'localhost',
    'lmdb:./x',
    'postgres://u:p@h/d',
    'memory:',
    '10.0.0.0/8',
    '::/0',
    '1s',
    'on',
    'off',
    'https://a.b',
  ],
];

const texts = (given: unknown): Record<string, string> =>
  Object.fromEntries(
    Object.entries(Object(given)).map(([name, value]) => [
      name,
      typeof value === 'string' ? value : JSON.stringify(value),
    ]),
  );

const runConfig = (input: Buffer): string => {
  let value: { readonly file?: unknown; readonly env?: unknown; readonly flags?: unknown };
  try {
    value = Object(JSON.parse(input.toString()));
  } catch {
    return 'not JSON';
  }
  const given = outcomeOf(() => ({ env: texts(value.env), flags: texts(value.flags) }), [RangeError]);
  if ('error' in given) return 'too deep for a text';
  holdsSecret(value.file);
  const file = value.file === undefined ? undefined : { name: 'sealpost.json', content: value.file };
  const read = outcomeOf(() => resolveSettings({ ...given.value, file }), [SettingError]);
  if ('error' in read) return shapeOf(read.error.message);
  const shown = showSettings(read.value);
  // What is shown, given again as flags, means the same.
  const flags = Object.fromEntries(
    shown.flatMap(({ name, value: text }) => (text === null || rowOf(name).secret ? [] : [[name, text]])),
  );
  const again = outcomeOf(() => resolveSettings({ flags, env: {}, file: undefined }), []);
  assert.ok('value' in again);
  const shownAgain = showSettings(again.value);
  for (const [i, one] of shown.entries())
    if (rowOf(one.name).secret !== true)
      assert.equal(shownAgain[i]?.value, one.value, `${one.name} is shown in another form than it is read`);
  return `accepted ${shown.map(({ source }) => source[0]).join('')}`;
};

const seeds = [
  {
    file: Object.fromEntries(
      settingNames.flatMap((name) => [[name, rowOf(name).defaultText ?? 'x'.repeat(20)]]).slice(0, 12),
    ),
  },
  { file: { listen: '127.0.0.1:8080', retentionDays: 30 } },
  ...settingNames.map((name) => ({ env: { [rowOf(name).env]: rowOf(name).defaultText ?? 'x'.repeat(20) } })),
  ...settingNames.map((name) => ({ flags: { [name]: rowOf(name).defaultText ?? 'x'.repeat(20) } })),
  {},
];

export const openConfig = async (): Promise<Target> => ({
  seeds: seeds.map((one) => Buffer.from(JSON.stringify(one))),
  words,
  json: 'value',
  run: runConfig,
});
