// Faults of the sandbox, as a line of text or as JSON.
import assert from 'node:assert/strict';
import { faultKindNames } from '../../../sandbox/src/faults/kinds.ts';
import { FaultError, fieldsOf, formatFault, parseFault } from '../../../sandbox/src/faults/parse.ts';
import { outcomeOf, requireSame, shapeOf, type Target } from '../target.ts';

const seeds = [
  'status=503,retry-after=2,probability=0.1,route=reportLatest',
  'latency=500ms,route=reportLatest+reportPage,count=3',
  'gap,from=10s,for=1m',
  '{"kind":"status","status":429,"from":"2026-03-13T14:30:00Z","to":"2026-03-13T14:31:00Z"}',
  ...faultKindNames,
];

const words = [
  ...faultKindNames,
  ...faultKindNames.flatMap((kind) => Object.keys(fieldsOf(kind))),
  ...[
    ',',
    '=',
    '+',
    '0',
    '1',
    '0.5',
    '500',
    '10s',
    '1.5s',
    '-1s',
    '2026-03-13T14:30:00Z',
    'true',
    'false',
    'latest',
    '__proto__',
  ],
];

/** A line, or JSON where the text begins with a brace. */
const read = (text: string): unknown => {
  if (!text.startsWith('{')) return text;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
};

export const openFault = async (): Promise<Target> => ({
  seeds: seeds.map((text) => Buffer.from(text)),
  words,
  json: 'value',
  run: (input) => {
    const given = read(input.toString());
    const parsed = outcomeOf(() => parseFault(given), [FaultError]);
    if ('error' in parsed) {
      assert.ok(parsed.error.message.length < 2_000, 'an error repeats the whole input');
      return shapeOf(parsed.error.message);
    }
    const fault = parsed.value;
    requireSame(parseFault(JSON.parse(JSON.stringify(fault))), fault, 'as JSON it is another fault');
    const line = formatFault(fault);
    // A line has no way to write some texts: commas, and spaces at the ends.
    if (
      !Object.values(fault)
        .flat()
        .some((one) => typeof one === 'string' && /[,+]|^\s|\s$/.test(one))
    )
      requireSame(parseFault(line), fault, 'as a line it is another fault');
    return `accepted ${Object.keys(fault).join()} ${fault.kind}`;
  },
});
