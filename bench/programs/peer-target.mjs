// A peer to be measured, in a process of its own: `postgres` or `sqlite` at an address, filled with the reports of the bench, or `ws`.
import { randomBytes, randomUUID } from 'node:crypto';
import { createServer } from '../peers/fastify-server.mjs';
import { openPostgresReports } from '../peers/postgres-reports.mjs';
import { openSqliteReports } from '../peers/sqlite-reports.mjs';
import { createFanout } from '../peers/ws-fanout.mjs';
import { benchStreams, rekeyedReports } from '../rekeyed-reports.ts';

const [kind, address, from, seconds] = process.argv.slice(2);
const account = { userId: randomUUID(), secret: randomBytes(32).toString('hex') };
const accounts = new Map([[account.userId, account.secret]]);

const rowOf = ({ feedId, validFromMs, observationsMs, fullReport }) => {
  const [validFrom, observations] = [validFromMs / 1_000, observationsMs / 1_000];
  const json = {
    feedID: feedId,
    validFromTimestamp: validFrom,
    observationsTimestamp: observations,
    fullReport: `0x${fullReport.toString('hex')}`,
  };
  return { feedId, validFrom, observations, report: JSON.stringify(json) };
};

const tellCpu = () => {
  const { user, system } = process.cpuUsage();
  process.send(user + system);
};

const serveReports = async () => {
  const reports = await (kind === 'postgres' ? openPostgresReports : openSqliteReports)(address);
  for (const batch of rekeyedReports(Number(from), Number(seconds))) await reports.insert(batch.map(rowOf));
  const url = await createServer(reports, accounts).listen({ port: 0, host: '127.0.0.1' });
  process.on('message', tellCpu);
  process.send({ url, ...account });
};

const serveLive = () => {
  const { http, deliver } = createFanout(accounts);
  const batches = rekeyedReports(Math.floor(Date.now() / 1_000) - 86_400, 86_400);
  process.on('message', () => {
    const begun = Number(process.hrtime.bigint());
    for (const row of (batches.next().value ?? []).map(rowOf)) deliver(row.feedId, row.report);
    process.send({ begun, stored: begun });
  });
  http.listen(0, '127.0.0.1', () =>
    process.send({ url: `http://127.0.0.1:${http.address().port}`, ...account, feedIds: benchStreams }),
  );
};

process.once('SIGTERM', () => process.exit());
if (kind === 'ws') serveLive();
else await serveReports();
