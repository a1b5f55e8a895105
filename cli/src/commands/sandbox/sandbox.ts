// The command `sealpost sandbox`: the whole service with a simulated network under control, and the commands that control a running one.
import type { Settings } from '@sealpost/server/config/config';
import { type PlainCommand, settingOptions } from '../../command.ts';
import { type RawOptions, readSettings } from '../../command-options.ts';
import { usageError } from '../../failure.ts';
import type { Session } from '../../session.ts';
import { planDefaults, readPlan } from './plan.ts';
import { remoteCommands } from './remote.ts';

const logLevelDefault = 'warn';
const sandboxBytesMax = 2 * 2 ** 30;
const portMax = 65_533; // the private listener and the chain have the next two

export const sandboxCommand: PlainCommand = {
  name: 'sandbox',
  summary: 'Run the whole service for tests: set time, prices, outages and faults.',
  options: [
    { flag: '--at <time>', help: 'when sandbox time starts, such as 2026-03-13T14:30:00Z; now by default' },
    { flag: '--speed <factor>', help: 'sandbox seconds per second, 0.01 to 10000' },
    { flag: '--paused', help: 'start with time paused' },
    { flag: '--past <duration>', help: `history before the start, such as 1h (default: ${planDefaults.past})` },
    {
      flag: '--streams <list>',
      help: 'pairs such as ETH/USD,BTC/USD; FOO/USD=1.5 makes one up; all for the whole catalog',
    },
    { flag: '--scenario <file>', help: 'JSON file with what happens when' },
    { flag: '--prices <file>', help: 'CSV file of prices to sign at their times, with the columns time,stream,price' },
    { flag: '--replay <file>', help: 'NDJSON file of reports to replay, as sealpost export writes it, signed again' },
    {
      flag: '--replay-times <times>',
      help: 'now moves replayed reports to the start of the sandbox; original keeps their times (default: now)',
      choices: ['now', 'original'],
    },
    { flag: '--catalog <file>', help: 'JSON file with the names of replayed streams' },
    { flag: '--fault <fault>', help: 'a fault from the start, such as status=503,probability=0.1', repeatable: true },
    {
      flag: '--account <name=streams>',
      help: 'an account of its own that may read public, or streams such as bob=ETH/USD,BTC/USD',
      repeatable: true,
    },
    {
      flag: '--seed <text>',
      help: `what prices, keys and credentials are derived from (default: ${planDefaults.seed})`,
    },
    { flag: '--oracles <count>', help: 'oracles in the network (default: 4)' },
    { flag: '--faulty <count>', help: 'number of oracles that may fail; f + 1 sign each report (default: 1)' },
    { flag: '--dir <folder>', help: 'folder to keep; by default a temporary one that is removed at the end' },
    {
      flag: '--listen <address>',
      help: 'HOST:PORT of the API, such as 0.0.0.0:7411 in a container; port 0 picks free ports',
      default: planDefaults.listen,
    },
    {
      flag: '--ops-listen <address>',
      help: 'HOST:PORT of the private listener, which controls the sandbox (default: 127.0.0.1, with the next port)',
    },
    {
      flag: '--chain [url]',
      help: 'run a local chain too, with a verifier contract; on 127.0.0.1, two ports after the API. Or deploy on a chain that you run: the URL of its JSON-RPC',
    },
    { flag: '--json', help: 'print one line of JSON when ready, and nothing else' },
    ...settingOptions(['requestsPerSecond', 'origins', 'logLevel'], { logLevel: logLevelDefault }),
  ],
  examples: [
    ['Start a sandbox', 'sealpost sandbox'],
    [
      'Two streams from a Friday afternoon on, sixty times as fast',
      'sealpost sandbox --streams ETH/USD,BTC/USD --at 2026-03-13T14:30:00Z --speed 60',
    ],
    ['Every tenth request fails', 'sealpost sandbox --fault status=503,probability=0.1'],
    ['Crash ETH by 30 %, in another terminal', 'sealpost sandbox set crash 30 streams=ETH/USD over=1m'],
    ['With a chain to verify reports and settle trades on', 'sealpost sandbox --chain'],
    ['Replay a file of reports ten times as fast', 'sealpost sandbox --replay reports.ndjson --speed 10'],
    [
      'For tests: free ports, no rate limits',
      'sealpost sandbox --json --listen 127.0.0.1:0 --past 0 --requests-per-second 0',
    ],
  ],
  run: ({ session, options }) => sandbox(session, options),
  subcommands: remoteCommands,
};

const sandbox = async (session: Session, options: RawOptions): Promise<void> => {
  const plan = await readPlan(options, Math.floor(session.nowMs() / 1_000));
  const { values, sources } = await readSettings(session, options);
  const isLogAsked = sources.logLevel !== 'default';
  const { listen } = values; // the flag's, as it has a default
  if (listen.port > portMax)
    throw usageError(`--listen has the value "${options.listen}", expected a port up to ${portMax}.`);
  const settings: Settings = {
    ...values,
    key: undefined,
    network: 'testnet',
    workers: 0,
    opsListen:
      sources.opsListen === 'flag'
        ? values.opsListen
        : { host: '127.0.0.1', port: listen.port === 0 ? 0 : listen.port + 1 },
    retentionBytes: sandboxBytesMax,
    logLevel: isLogAsked ? values.logLevel : logLevelDefault,
  };
  const dir = typeof options.dir === 'string' ? options.dir : undefined;
  const { runSandbox } = await import('./run.ts'); // its help does not load a server
  await runSandbox(session, { plan, settings, dir, json: options.json === true, isLogAsked });
};
