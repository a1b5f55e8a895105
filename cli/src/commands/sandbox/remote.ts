// The commands that control a running sandbox through its private listener: set, show, clear, record.
import { writeFile } from 'node:fs/promises';
import { eventRow, eventTypes } from '@sealpost/sandbox/scenario/event-table';
import type { SandboxState } from '@sealpost/sandbox/scenario-runner';
import type { ArgumentRow, OptionRow, PlainCommand } from '../../command.ts';
import { type RawOptions, readJsonFile } from '../../command-options.ts';
import { CommandError, exitCodes, usageError } from '../../failure.ts';
import { printJson, type Session } from '../../session.ts';
import { readEventArguments } from './event-arguments.ts';
import { planDefaults } from './plan.ts';
import { renderState } from './state-text.ts';

const urlDefault = `http://127.0.0.1:${planDefaults.opsPort}`;

const urlOption: OptionRow = {
  flag: '--url <url>',
  help: `private listener of the sandbox ($SEALPOST_SANDBOX_URL, default: ${urlDefault})`,
};
const jsonOption: OptionRow = { flag: '--json', help: 'print JSON' };

const requestMs = 60_000;

/** Asks the sandbox; its errors become those of the command. */
const ask = async (
  session: Session,
  options: RawOptions,
  method: 'GET' | 'POST',
  path: string,
  body?: unknown,
): Promise<unknown> => {
  const base = String(options.url ?? session.env.SEALPOST_SANDBOX_URL ?? urlDefault);
  if (!URL.canParse(base)) throw usageError(`--url has the value "${base}", expected a URL such as ${urlDefault}.`);
  const url = new URL(path, base);
  let response: Response;
  try {
    response = await fetch(url, {
      method,
      signal: AbortSignal.timeout(requestMs),
      ...(body !== undefined && { body: JSON.stringify(body), headers: { 'Content-Type': 'application/json' } }),
    });
  } catch (cause) {
    const text = `No sandbox answers at ${url.origin}. Start one with: sealpost sandbox. For another address, use --url.`;
    throw new CommandError(exitCodes.unavailable, text, { cause });
  }
  const answered: unknown = await response.json().catch(() => undefined);
  if (response.ok && answered !== undefined) return answered;
  const { error, code } = Object(answered);
  if (code === 'route_not_found' || typeof error !== 'string')
    throw new CommandError(exitCodes.unavailable, `${url.origin} is not the private listener of a sandbox.`);
  throw new CommandError(response.status === 400 ? exitCodes.usage : exitCodes.refused, error);
};

const printState = async (session: Session, options: RawOptions, state: SandboxState): Promise<void> =>
  options.json === true ? printJson(session, state) : session.write(renderState(state));

const show: PlainCommand = {
  name: 'show',
  summary: 'Show time, speed, scenario and faults of a running sandbox.',
  options: [urlOption, jsonOption],
  examples: [['Show it', 'sealpost sandbox show']],
  run: async ({ session, options }) =>
    printState(session, options, (await ask(session, options, 'GET', '/sandbox')) as SandboxState), // as control.ts answers
};

const whatArgument: ArgumentRow = {
  name: '[EVENT]',
  help: `type of event (${eventTypes.join(', ')}), or a JSON object or list`,
  choices: eventTypes,
};

const set: PlainCommand = {
  name: 'set',
  summary: 'Make something happen in a running sandbox: time, prices, outages, faults.',
  arguments: [
    whatArgument,
    { name: '[FIELDS...]', help: 'the value of its main field, and fields such as streams=ETH/USD' },
  ],
  options: [{ flag: '--file <file>', help: 'JSON file with an event or a list of events' }, urlOption, jsonOption],
  about: `Events:\n${eventTypes.map(describeEvent).join('\n')}`,
  examples: [
    ['Time', 'sealpost sandbox set speed 60'],
    ['Advance it by a minute', 'sealpost sandbox set step 1m'],
    ['A price', 'sealpost sandbox set level 4200.55 streams=ETH/USD'],
    ['An outage of two minutes, delivered late', 'sealpost sandbox set outage 2m recovery=backfill'],
    ['A fault', 'sealpost sandbox set fault status=429,retry-after=2,route=reportLatest,count=3'],
    ['At a time', 'sealpost sandbox set rotate at=10m'],
  ],
  run: async ({ session, options }, event: string | undefined, fields: readonly string[]) => {
    const file = typeof options.file === 'string' ? options.file : undefined;
    if ((file === undefined) === (event === undefined))
      throw usageError('Name an event, or a file with --file, but not both. See: sealpost sandbox set --help.');
    const body = file === undefined ? readEventArguments(event ?? '', fields) : await readJsonFile(file);
    const { state } = (await ask(session, options, 'POST', '/sandbox/events', body)) as { state: SandboxState }; // as control.ts answers
    await printState(session, options, state);
  },
};

function describeEvent(type: (typeof eventTypes)[number]): string {
  const { about, fields, main } = eventRow(type);
  const names = Object.entries(fields).map(([name, field]) => {
    const shown = name === main ? `${name}` : `${name}=…`;
    return field.required ? shown : `[${shown}]`;
  });
  return `  ${[type, ...names].join(' ')}\n      ${about}`;
}

const clear: PlainCommand = {
  name: 'clear',
  summary: 'End faults, price effects and outages of a running sandbox.',
  arguments: [
    {
      name: '[WHAT]',
      help: 'everything, faults or streams',
      default: 'everything',
      choices: ['everything', 'faults', 'streams'],
    },
  ],
  options: [urlOption, jsonOption],
  examples: [['Faults only', 'sealpost sandbox clear faults']],
  run: async ({ session, options }, what: string) => {
    const answered = await ask(session, options, 'POST', '/sandbox/events', { type: 'clear', what });
    await printState(session, options, (answered as { state: SandboxState }).state); // as control.ts answers
  },
};

const record: PlainCommand = {
  name: 'record',
  summary: 'Write what happened in a running sandbox as a scenario file.',
  options: [
    { flag: '--out <file>', help: 'file to write; stdout by default' },
    { flag: '--json', help: 'print it on one line' },
    urlOption,
  ],
  examples: [
    ['Record', 'sealpost sandbox record --out scenario.json'],
    ['Run it again', 'sealpost sandbox --scenario scenario.json'],
  ],
  run: async ({ session, options }) => {
    const recorded = await ask(session, options, 'GET', '/sandbox/record');
    const text = `${JSON.stringify(recorded, null, options.json === true ? 0 : 2)}\n`;
    if (typeof options.out !== 'string') return session.write(text);
    await writeFile(options.out, text);
    session.stderr.write(`Wrote ${options.out}.\n`);
  },
};

/** Below `sealpost sandbox`. */
export const remoteCommands: readonly PlainCommand[] = [set, show, clear, record];
