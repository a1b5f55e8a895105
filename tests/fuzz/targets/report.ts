// Full reports as bytes: the decoders of protocol, client, server and explorer, ox as a reference, and verification by both engines.
import assert from 'node:assert/strict';
import { decode, SealpostError, verify } from '@sealpost/client';
import { columnsOf, createCsv, exportRowOf } from '@sealpost/client/export';
import {
  appendFeeToken,
  decodeFullReport,
  decodeReportBody,
  encodeFullReport,
  encodeReportBody,
  type FullReport,
  portableEngine,
  type ReportBody,
  ReportFormatError,
  readReportBody,
  reportDigest,
  toReportJson,
  verifyReport,
  windowOf,
} from '@sealpost/protocol';
import * as AbiParameters from 'ox/AbiParameters';
import { contentsOf } from '../../../server/src/store/format/report-contents.ts';
import { createMaterial, toBytes, toHex } from '../material.ts';
import { outcomeOf, requireSame, type Target } from '../target.ts';

const envelope = AbiParameters.from(['bytes32[3]', 'bytes', 'bytes32[]', 'bytes32[]', 'bytes32']);

/** ox, which is laxer, must read the same of everything that we accept. */
const checkEnvelope = (hex: `0x${string}`, full: FullReport): void => {
  const [context, body, rs, ss, vs] = AbiParameters.decode(envelope, hex);
  requireSame(
    context,
    [full.context.configDigest, full.context.epochAndRound, full.context.extraHash],
    'ox reads another context',
  );
  assert.equal(body, full.body);
  requireSame(
    rs,
    full.signatures.map(({ r }) => r),
    'ox reads other r values',
  );
  requireSame(
    ss,
    full.signatures.map(({ s }) => s),
    'ox reads other s values',
  );
  requireSame(
    [...toBytes(vs)].slice(0, rs.length),
    full.signatures.map(({ v }) => v),
    'ox reads other v values',
  );
  assert.ok(appendFeeToken(hex, `0x${'11'.repeat(20)}`).length > hex.length);
};

const rowOptions = { isDecoded: true, isRaw: false, hasFullReport: false };

/** As a row of CSV, which has dates for times. */
const exportOne = (fullReport: `0x${string}`, body: ReportBody): void => {
  const columns = columnsOf([body.version], rowOptions);
  const json = toReportJson(body.feedId, windowOf(body), fullReport);
  const { row, problem } = exportRowOf(columns, { feedId: body.feedId, name: 'fuzz' }, json, true);
  assert.ok(row !== undefined, problem);
  createCsv(columns).add([row]);
};

const digestOf = (full: FullReport): string => toHex(reportDigest(full));

export const openReport = async (): Promise<Target> => {
  const { network, reports } = await createMaterial();
  const signerSets = new Map([[network.signerSet.configDigest, network.signerSet]]);
  const signed = new Set(reports.map((report) => digestOf(decodeFullReport(report))));

  const checkVerification = (hex: `0x${string}`, full: FullReport): string => {
    const byWasm = verifyReport(full, signerSets, network.engine);
    const recovers = full.signatures.length === network.signerSet.f + 1;
    // Recovery in plain JavaScript takes milliseconds, so only where there is something to recover, and for one in eight.
    if (recovers && (byWasm.ok || toBytes(hex)[40] === 0 || (toBytes(hex).at(-1) as number) % 8 === 0)) {
      requireSame(verifyReport(full, signerSets, portableEngine), byWasm, 'the engines disagree');
      const verdict = verify(hex, signerSets);
      assert.equal(verdict.ok, byWasm.ok, 'client and protocol disagree');
    }
    assert.ok(!byWasm.ok || signed.has(digestOf(full)), 'a report verifies that nobody signed');
    return byWasm.ok ? 'verified' : byWasm.reason;
  };

  const run = (input: Buffer): string => {
    const hex = toHex(input);
    const read = outcomeOf(() => decodeFullReport(hex), [ReportFormatError]);
    const byClient = outcomeOf(() => decode(hex), [SealpostError]);
    if ('error' in read) {
      assert.ok('error' in byClient, 'the client decodes what the protocol does not');
      assert.equal(contentsOf(input), undefined);
      return `envelope ${read.error.message.replace(/\d+/g, 'N')}`;
    }
    const full = read.value;
    assert.equal(encodeFullReport(full), hex, 'an accepted report encodes to other bytes');
    checkEnvelope(hex, full);
    const verdict = checkVerification(hex, full);
    const body = outcomeOf(() => decodeReportBody(full.body), [ReportFormatError]);
    assert.equal('error' in body, 'error' in byClient, 'client and protocol disagree about the body');
    const head = outcomeOf(() => readReportBody(full.body), [ReportFormatError]);
    assert.equal(contentsOf(input) === undefined, 'error' in head, 'server and protocol disagree about the head');
    const isUnknown = 'error' in body && (body.error as ReportFormatError).reason === 'unknown_schema';
    assert.equal('value' in head, isUnknown || 'value' in body, 'a body of an unknown schema has a head');
    if ('error' in body) return `body ${body.error.message.replace(/\d+/g, 'N')} ${verdict}`;
    assert.equal(encodeReportBody(body.value), full.body, 'an accepted body encodes to other bytes');
    exportOne(hex, body.value);
    return `accepted v${body.value.version} ${full.signatures.length} ${verdict}`;
  };

  return { seeds: reports.map(toBytes), run, inputBytesMax: 8_192 };
};
