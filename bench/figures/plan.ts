// The calculation for 10,000 streams in docs/sizing.md.
import { bytesOf, type Costs, ingestMsOf } from './costs.ts';
import { digits, table, thousands } from './tables.ts';

const plan = { streams: 10_000, perSecond: 10, shards: 40, requests: 2_000, messages: 50_000, regions: 3 } as const;
const reports = plan.streams * plan.perSecond;
const shardReports = reports / plan.shards;
const secondsPerDay = 86_400;
/** Bytes of a report as a line, with 2 and 6 signatures. */
const lineBytes = { 2: 1_700, 6: 2_200 } as const;
const nodesPerShard = 2;
const databasesPerShard = 2;

type Signatures = keyof typeof lineBytes;

const shardOf = (costs: Costs, signatures: Signatures) => {
  const ingest = (shardReports * ingestMsOf(costs, signatures)) / 1_000;
  const follow = (shardReports * costs.followMs) / 1_000;
  const requests = (plan.requests * costs.latestMs) / 1_000;
  const messages = (plan.messages * costs.messageMs) / 1_000;
  const node = ingest + follow + requests + messages;
  const nodeCores = 2 ** Math.ceil(Math.log2(node / 0.75));
  const database = (shardReports * costs.storeMs) / 1_000;
  const databaseCores = Math.max(4, 2 ** Math.ceil(Math.log2((database + nodesPerShard * follow) / 0.5)));
  const dayBytes = shardReports * secondsPerDay * bytesOf(costs.databaseBytes, signatures);
  const cores = plan.shards * (nodesPerShard * nodeCores + databasesPerShard * databaseCores);
  const weekTb = (plan.shards * databasesPerShard * dayBytes * 7) / 1e12;
  return { ingest, follow, requests, messages, node, nodeCores, database, databaseCores, dayBytes, cores, weekTb };
};

const shardRows = (costs: Costs): readonly (readonly string[])[] => {
  const [two, six] = [shardOf(costs, 2), shardOf(costs, 6)];
  const both = (show: (shard: typeof two) => string): readonly [string, string] => [show(two), show(six)];
  return [
    ['ingest', ...both(({ ingest }) => `${digits(ingest)} cores`)],
    ['following, each node', ...both(({ follow }) => `${digits(follow)} cores`)],
    [
      `reading, ${thousands(plan.requests)} \`latest\`/s and ${thousands(plan.messages)} messages/s`,
      ...both(({ requests, messages }) => `${digits(requests)} + ${digits(messages)} cores`),
    ],
    ['one node, when the other is lost', ...both(({ node, nodeCores }) => `${digits(node)} of **${nodeCores} cores**`)],
    [
      'primary and standby, each',
      ...both(
        ({ database, follow, databaseCores }) =>
          `${digits(database)} to store, up to ${digits(nodesPerShard * follow)} for two followers, of **${databaseCores} cores**`,
      ),
    ],
    [
      'disk, each copy',
      ...both(
        ({ dayBytes }) =>
          `${digits(dayBytes / 1e9)} GB a day: **${digits((dayBytes * 7) / 1e12)} TB for 7 days**, ${digits((dayBytes * 30) / 1e12)} TB for 30`,
      ),
    ],
    [
      'network in',
      `${digits((shardReports * lineBytes[2]) / 1e6)} MB/s`,
      `${digits((shardReports * lineBytes[6]) / 1e6)} MB/s`,
    ],
    ['memory', '8 GB per node; 64 GB per database, for half a day of reports', '8 GB; 64 GB'],
  ];
};

const totalRows = (costs: Costs): readonly (readonly string[])[] => {
  const [two, six] = [shardOf(costs, 2), shardOf(costs, 6)];
  const nodes = plan.shards * nodesPerShard;
  const region = ({ cores, weekTb }: typeof two): string =>
    `${thousands(cores)} cores, ${digits(weekTb)} TB for 7 days in two copies`;
  const all = ({ cores, weekTb }: typeof two): string =>
    `**${thousands(plan.regions * cores)} cores, ${digits(plan.regions * weekTb)} TB** (${digits((plan.regions * weekTb * 30) / 7)} TB for 30 days)`;
  const network = (bytes: number): string =>
    `${digits((reports * bytes) / 1e6)} MB/s, ${digits((reports * bytes * 8) / 1e9)} Gbit/s`;
  return [
    [`a region: ${nodes} nodes, ${plan.shards * databasesPerShard} databases`, region(two), region(six)],
    ['three regions', all(two), all(six)],
    ['network into a region', network(lineBytes[2]), network(lineBytes[6])],
  ];
};

export const renderPlan = (costs: Costs): string => {
  const coresOf = (signatures: number): string => thousands((reports * ingestMsOf(costs, signatures)) / 1_000);
  const { cores, ingest, follow, requests, messages, database } = shardOf(costs, 2);
  const busy = plan.regions * plan.shards * (ingest + 2 * follow + requests + messages + 2 * database);
  return `${thousands(reports)} reports per second, ${digits((reports * secondsPerDay) / 1e9)} billion a day. Nothing was run at that size.

**Shards.** Ingest needs ${coresOf(2)} cores with 2 signatures and ${coresOf(6)} with 6, and ${digits(reports / costs.followedPerSecond)} times what one database was measured to store while it is followed. So
the streams are split into **${plan.shards} shards of ${plan.streams / plan.shards} streams**, ${thousands(shardReports)} reports per second each. One process was measured with ${thousands(costs.ingestPerSecond)} and one followed database with
${thousands(costs.followedPerSecond)}, both on ${costs.cores} cores.

**Regions are independent.** Each has all ${plan.shards} shards, and the network sends reports to every region. No commit waits for another continent, and the loss of a region
affects no other; the cost is that each region verifies for itself. Clients have one address per region and fail over, as \`@sealpost/client\` does.

${table(['one shard', '2 signatures', '6 signatures'], shardRows(costs))}

${table(['total', '2 signatures', '6 signatures'], totalRows(costs))}

Without failures about ${digits(busy)} of the ${thousands(plan.regions * cores)} cores would be busy. The rest covers the loss of a node, and ${plan.shards} small shards waste more than a few large ones.`;
};
