// The command `sealpost config`: every setting with its value, where it came from, and its default.
import { settingNames, settingsTable } from '@sealpost/server/config/config';
import { showSettings } from '@sealpost/server/config/shown';
import type { SettingsCommand } from '../command.ts';
import { renderTable } from '../formats.ts';
import type { Session } from '../session.ts';

export const configCommand: SettingsCommand = {
  name: 'config',
  summary: 'Show every setting with its value, source (flag, environment, file, default) and default.',
  options: [{ flag: '--json', help: 'print one line of JSON' }],
  settings: settingNames,
  examples: [
    ['Show the settings of a config file', 'sealpost config --config /etc/sealpost.json'],
    ['Check the effect of a variable', 'SEALPOST_RETENTION_DAYS=7 sealpost config'],
  ],
  run: async ({ session, resolved, print }) => {
    const shown = showSettings(resolved);
    warnOfUnknownVariables(session);
    const columns = ['setting', 'value', 'source', 'default', 'variable', 'flag'].map((title) => ({ title }));
    const rows = shown.map(({ name, value, source, default: fallback, env, flag }) => [
      name,
      value ?? '–',
      source,
      fallback ?? '–',
      env,
      flag ?? '–',
    ]);
    await print(shown, renderTable(columns, rows, session.paint));
  },
};

// A misspelt variable would otherwise do nothing, in silence.
/** Read by the commands that ask a server, and by no setting. */
const readingVariables = ['SEALPOST_URL', 'SEALPOST_WS_URL', 'SEALPOST_USER_ID', 'SEALPOST_SECRET'];

const warnOfUnknownVariables = ({ env, stderr }: Session): void => {
  const known = [
    ...readingVariables,
    'SEALPOST_CONFIG',
    ...settingNames.map((name): string => settingsTable[name].env),
  ];
  const unknown = Object.keys(env).filter((name) => name.startsWith('SEALPOST_') && !known.includes(name));
  for (const name of unknown) stderr.write(`warning: ${name} is not a setting and has no effect.\n`);
};
