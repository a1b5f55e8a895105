// Renders the parts of docs/sizing.md that contain numbers, from measured figures (D211).
import { bytesOf, type Costs, costsOf, ingestMsOf, signatureBytes } from './costs.ts';
import { renderPlan } from './plan.ts';
import type { SavedFigures } from './saved-figures.ts';
import { digits, table, thousands } from './tables.ts';

type Deployment = {
  readonly streams: number;
  readonly perSecond: number;
  readonly signatures: number;
  readonly requests: number;
  readonly messages: number;
};

const deployments: readonly Deployment[] = [
  { streams: 27, perSecond: 1, signatures: 2, requests: 100, messages: 0 },
  { streams: 500, perSecond: 1, signatures: 2, requests: 2_000, messages: 0 },
  { streams: 500, perSecond: 1, signatures: 6, requests: 5_000, messages: 100_000 },
  { streams: 50, perSecond: 1, signatures: 2, requests: 100, messages: 250_000 },
  { streams: 250, perSecond: 10, signatures: 2, requests: 2_000, messages: 0 },
];

/** The share of the cores that is used at most, so that bursts and the loss of a node fit. */
const usedShare = 0.5;
const secondsPerDay = 86_400;
const processGb = 0.3;
/** Reports in the page cache: those of half a day. */
const cachedSeconds = secondsPerDay / 2;

const renderFigures = (costs: Costs): string =>
  table(
    ['what', 'costs', 'from'],
    [
      [
        'ingesting a report, 2 signatures',
        `${digits(costs.ingestMs)} ms of CPU`,
        `${thousands(costs.ingestPerSecond)} per second, verified and durable, on ${costs.cores} cores`,
      ],
      ['… of it, each signature', `${digits(costs.signatureMs)} ms`, 'measured alone, on all cores'],
      ['… of it, everything else', `${digits(costs.otherMs)} ms`, 'computed: the difference'],
      [
        'ingesting a report, 6 signatures',
        `${digits(ingestMsOf(costs, 6))} ms`,
        `computed: ${digits(costs.otherMs)} + 6 × ${digits(costs.signatureMs)}`,
      ],
      [
        'a report on disk, embedded store',
        `${costs.diskBytes} bytes with 2 signatures`,
        `measured; each further signature adds ${signatureBytes}`,
      ],
      [
        'a report on disk, PostgreSQL',
        `${costs.databaseBytes} bytes with 2 signatures`,
        'measured with indexes; likewise',
      ],
      [
        'PostgreSQL, storing',
        `${thousands(costs.storePerSecond)} reports per second`,
        `measured without verifying, batches of 240, database on the same ${costs.cores} cores`,
      ],
      [
        '… while two nodes follow',
        `${thousands(costs.followedPerSecond)} reports per second`,
        `measured; so following costs ${digits(costs.followMs)} ms per report and node, database included, computed`,
      ],
      ['`latest`', `${digits(costs.latestMs)} ms`, 'measured, logging and limits included'],
      [
        `\`latest\` per second, the load on the same ${costs.cores} cores`,
        costs.latestPerSecond.map(thousands).join('; '),
        'measured without workers, with 2 and with 4',
      ],
      [
        'bulk of 24, page of 100',
        `${digits(costs.bulkMs)} and ${digits(costs.pageMs)} ms; ${digits(costs.bulkColdMs)} and ${digits(costs.pageColdMs)} the first time`,
        'measured',
      ],
      ['a live message', `${digits(costs.messageMs * 1_000)} µs`, 'measured, 1,000 readers of 24 streams'],
      [
        'an idle live connection',
        `${digits(costs.idleKiB)} KiB, ${digits(costs.idleBeyondKiB)} of it beyond \`ws\``,
        'measured, 10,000 connections, without the kernel’s part; plan 50 KiB, assumed',
      ],
      [
        'a process',
        `${costs.processMb} MB, ${costs.writerMb} MB`,
        'measured without the page cache: after a million requests, and after writing 20 million reports',
      ],
    ],
  );

const renderRule = (costs: Costs): string => {
  const [other, signature, follow, store] = [costs.otherMs, costs.signatureMs, costs.followMs, costs.storeMs].map(
    digits,
  );
  return `With S streams, r reports per second each, k signatures, Q requests and M live messages per second:

- **Cores to ingest** = S × r × (${other} + ${signature} k) / 1000. **Cores to read** = Q × ${digits(costs.latestMs)} / 1000 + M × ${digits(costs.messageMs)} / 1000. With PostgreSQL, **each node** that follows needs
  S × r × ${follow} / 1000 more, which includes the database's part; **the database** needs S × r × ${store} / 1000 to store. Plan for ${usedShare * 100} % use and for the loss of one node.
- **Disk** = S × r × 86,400 × days × (${costs.diskBytes} + ${signatureBytes} (k − 2)) bytes, plus a quarter for free pages; in PostgreSQL ${costs.databaseBytes} instead of ${costs.diskBytes}, for each copy, plus WAL.
- **Memory** = ${processGb} GB per process, 50 KiB per live connection, and page cache for the reports that are read most, half a day of them below.
- **One process ingests** at most ${thousands(1_000 / costs.otherMs)} reports per second, with any number of verifier threads: ${other} ms each in one thread, if all of that is on it. Nothing
  above ${thousands(costs.ingestPerSecond)} was measured.
- **One database ingests** what was measured above, because one lock orders all batches (D82). For more, use a second database.
- **Network**: a report with 2 signatures is 736 bytes, 1.7 KB as a live message or a line; with 6 signatures 2.2 KB.`;
};

const nextPower = (least: number): number => 2 ** Math.max(0, Math.ceil(Math.log2(least)));

/** What takes most, and what part of all CPU that is. */
const bottleneckOf = (shares: Readonly<Record<string, number>>): string => {
  const used = Object.values(shares).reduce((sum, share) => sum + share, 0);
  const [[name, most] = ['', 0]] = Object.entries(shares).toSorted(([, a], [, b]) => b - a);
  return `${name}, ${Math.round((100 * most) / used)} % of the CPU`;
};

const renderDeployment = (costs: Costs, deployment: Deployment): readonly string[] => {
  const { streams, perSecond, signatures, requests, messages } = deployment;
  const reports = streams * perSecond;
  const shares = {
    'signature recovery': (reports * signatures * costs.signatureMs) / 1_000,
    'the writing thread': (reports * costs.otherMs) / 1_000,
    'answering requests': (requests * costs.latestMs) / 1_000,
    'writing to sockets, which is the kernel’s': (messages * costs.messageMs) / 1_000,
  };
  const ingesting = (reports * ingestMsOf(costs, signatures)) / 1_000;
  const reading = (requests * costs.latestMs + messages * costs.messageMs) / 1_000;
  const cores = nextPower((ingesting + reading) / usedShare);
  const workers = Math.ceil(reading / usedShare);
  const bytesPerSecond = reports * bytesOf(costs.diskBytes, signatures);
  const diskGb = (bytesPerSecond * secondsPerDay * 30) / 1e9;
  const memoryGb = nextPower((bytesPerSecond * cachedSeconds) / 1e9 + processGb * (1 + workers));
  return [
    [
      `${streams} streams, ${perSecond}/s, ${signatures} signatures, ${thousands(requests)} requests/s`,
      ...(messages > 0 ? [`${thousands(messages)} messages/s`] : []),
    ].join(', '),
    `${digits(ingesting)} + ${digits(reading)} → ${cores}`,
    `${thousands(diskGb)} GB → ${thousands(diskGb * 1.25)}`,
    `${cores} ${cores === 1 ? 'core' : 'cores'}, ${memoryGb} GB${workers > 1 ? `, \`--workers ${workers}\`` : ''}`,
    bottleneckOf(shares),
  ];
};

const renderDeployments = (costs: Costs): string =>
  table(
    ['deployment', 'cores to ingest + to read → to have', 'disk for 30 days, embedded', 'machine', 'bottleneck'],
    deployments.map((deployment) => renderDeployment(costs, deployment)),
  );

const parts = {
  figures: renderFigures,
  rule: renderRule,
  deployments: renderDeployments,
  plan: renderPlan,
} as const satisfies Record<string, (costs: Costs) => string>;

/** The document with its generated parts, each between two comments, rendered again. */
export const renderSizing = (document: string, saved: SavedFigures): string => {
  const costs = costsOf(saved);
  return Object.entries(parts).reduce((text, [name, render]) => {
    const [begin, end] = [`<!-- generated: ${name} -->`, `<!-- end: ${name} -->`];
    const [from, to] = [text.indexOf(begin), text.indexOf(end)];
    if (from < 0 || to < from) throw new Error(`docs/sizing.md has no ${begin} … ${end}.`);
    return `${text.slice(0, from + begin.length)}\n\n${render(costs)}\n\n${text.slice(to)}`;
  }, document);
};
