import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { root } from '../../../tests/support/source-tree.ts';
import { eventRow, eventTypes } from './event-table.ts';

const text = readFileSync(join(root, 'docs/sandbox.md'), 'utf8');

/** The row of an event as the document has it. */
const eventLine = (type: (typeof eventTypes)[number]): string => {
  const { about, fields, main } = eventRow(type);
  const names = Object.entries(fields).map(([name, { required }]) => {
    const shown = name === main ? `**${name}**` : name;
    return required ? shown : `[${shown}]`;
  });
  return `| \`${type}\` | ${names.join(', ')} | ${about} |`;
};

test('docs: sandbox.md has every event, as the table has it', () => {
  const missing = eventTypes.map(eventLine).filter((line) => !text.includes(`\n${line}\n`));
  expect(missing, `Not in docs/sandbox.md:\n${missing.join('\n')}`).toEqual([]);
  const section = text.slice(text.indexOf('## Events'), text.indexOf('## Faults'));
  expect(section.match(/^\| `[a-z-]+` \| /gm)?.length).toBe(eventTypes.length);
});
