// Every check, in the order in which a run makes them: what judges the whole run comes last.
import type { Check } from './check.ts';
import { bulkChecks } from './checks/bulk.ts';
import { clockChecks } from './checks/clock.ts';
import { deliveryChecks } from './checks/delivery.ts';
import { discoveryChecks, feedsChecks } from './checks/discovery.ts';
import { errorChecks } from './checks/errors.ts';
import { historyChecks } from './checks/history.ts';
import { originChecks } from './checks/origins.ts';
import { pageChecks } from './checks/page.ts';
import { atChecks, latestChecks } from './checks/reads.ts';
import { reportChecks } from './checks/reports.ts';
import { signingChecks } from './checks/signing.ts';
import { websocketChecks } from './checks/websocket.ts';
import { serviceChecks } from './checks/whole-run.ts';

export const checkTable: readonly Check[] = [
  ...signingChecks,
  ...clockChecks,
  ...discoveryChecks,
  ...feedsChecks,
  ...latestChecks,
  ...atChecks,
  ...bulkChecks,
  ...pageChecks,
  ...historyChecks,
  ...errorChecks,
  ...websocketChecks,
  ...deliveryChecks,
  ...originChecks,
  ...reportChecks,
  ...serviceChecks,
];
