// What each piece of work costs, computed from measured figures.
import { figureOf, type SavedFigures } from './saved-figures.ts';

const signaturesMeasured = 2;
/** Bytes of a signature at rest. */
export const signatureBytes = 65;
const followersMeasured = 2;

export type Costs = ReturnType<typeof costsOf>;

/** Milliseconds of CPU, bytes, and rates per second. */
export const costsOf = (saved: SavedFigures) => {
  const cores = saved.ingest?.cores ?? 1;
  const perReport = (ratePerSecond: number): number => (cores * 1_000) / ratePerSecond;
  const ingestPerSecond = figureOf(saved, 'ingest', 'verified and durable ingest, all cores');
  const recovered = saved.ingest?.figures.find(({ name }) => name.startsWith('bare recovery'))?.value ?? Number.NaN;
  const signatureMs = perReport(recovered) / signaturesMeasured;
  const storePerSecond = figureOf(saved, 'postgres', 'append, durable, batches of 240', 'reports/s');
  const followedPerSecond = figureOf(saved, 'postgres', 'append while two nodes follow');
  const coldMs = (name: string): number =>
    (figureOf(saved, 'http', `${name}, times the bare server’s CPU`, 'cold') *
      figureOf(saved, 'http', `${name}, bare node:http`)) /
    1_000;
  return {
    cores,
    ingestPerSecond,
    ingestMs: perReport(ingestPerSecond),
    signatureMs,
    otherMs: perReport(ingestPerSecond) - signaturesMeasured * signatureMs,
    storePerSecond,
    storeMs: perReport(storePerSecond),
    followedPerSecond,
    followMs: (perReport(followedPerSecond) - perReport(storePerSecond)) / followersMeasured,
    latestMs: figureOf(saved, 'http', 'latest', 'µs CPU') / 1_000,
    bulkMs: figureOf(saved, 'http', 'bulk of 24', 'µs CPU') / 1_000,
    bulkColdMs: coldMs('bulk of 24'),
    pageMs: figureOf(saved, 'http', 'page of 100', 'µs CPU') / 1_000,
    pageColdMs: coldMs('page of 100'),
    messageMs: figureOf(saved, 'live', 'CPU per delivered message') / 1_000,
    idleKiB: figureOf(saved, 'live', 'memory of an idle socket'),
    idleBeyondKiB: figureOf(saved, 'live', 'memory of an idle socket beyond bare ws'),
    processMb: figureOf(saved, 'http', 'RssAnon after a million requests'),
    writerMb: figureOf(saved, 'growth', 'RssAnon of the writer'),
    latestPerSecond: ['no workers', '2 workers', '4 workers'].map((name) =>
      figureOf(saved, 'workers', `${name}: latest, requests per second`),
    ),
    diskBytes: figureOf(saved, 'store', 'disk per report'),
    databaseBytes: figureOf(saved, 'postgres', 'disk per report'),
  };
};

/** CPU to ingest a report with so many signatures, in milliseconds. */
export const ingestMsOf = ({ otherMs, signatureMs }: Costs, signatures: number): number =>
  otherMs + signatureMs * signatures;

/** Bytes of a report with so many signatures. */
export const bytesOf = (bytes: number, signatures: number): number =>
  bytes + signatureBytes * (signatures - signaturesMeasured);
