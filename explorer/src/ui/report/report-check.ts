// The check of a report in this browser: the verdict and, if it fails, what differs from the signed report where that is known.
import { type Client, SealpostError } from '@sealpost/client';
import type { SignerSetsJson } from '@sealpost/protocol';
import { useEffect, useState } from 'preact/hooks';
import type { Chunks } from '../../state/code/chunks.ts';
import { useExplorer } from '../../state/explorer.ts';
import { explainError } from '../../state/session.ts';
import { useLoaded } from '../loaded.ts';
import type { Claim, Proof } from './proof.ts';
import { type ReportReading, readReport } from './reading.ts';

/** Where a report is from. `original`: the report before this page altered it. */
export type ReportSource =
  | { readonly kind: 'server' }
  | { readonly kind: 'given'; readonly original?: string | undefined }
  /** An example that ships with the page, and the signer set of its network. */
  | { readonly kind: 'example'; readonly original?: string | undefined; readonly signers: SignerSetsJson };

export type Comparison =
  /** Nothing to compare: the signatures are valid, or nothing is known about them. */
  | { readonly kind: 'none' }
  | { readonly kind: 'comparing' }
  /** `signed`: the signed report that it was made from. */
  | { readonly kind: 'different'; readonly signed: ReportReading }
  /** `why` in a sentence; `canSignIn` if an account may help. */
  | { readonly kind: 'unknown'; readonly why: string; readonly canSignIn: boolean };

export type ReportCheck =
  | { readonly phase: 'checking' }
  /** The signer sets, or the code that checks signatures, could not be loaded. */
  | { readonly phase: 'unavailable'; readonly error: unknown; readonly retry: () => void }
  | { readonly phase: 'done'; readonly proof: Proof; readonly comparison: Comparison };

/** `unknown`: neither confirmed nor disproved, because the signers are not known. */
export type VerdictState = 'pending' | 'verified' | 'refused' | 'unknown';

export function verdictStateOf(check: ReportCheck): VerdictState {
  if (check.phase === 'checking') return 'pending';
  if (check.phase === 'unavailable' || check.proof.kind === 'unknown_config_digest') return 'unknown';
  return check.proof.ok ? 'verified' : 'refused';
}

/** The signed report that it was made from, if that is known. */
export const signedReportOf = (check: ReportCheck): ReportReading | undefined =>
  check.phase === 'done' && check.comparison.kind === 'different' ? check.comparison.signed : undefined;

type Subject = { readonly report: ReportReading; readonly claim: Claim | undefined; readonly source: ReportSource };

/** What a check reads with. */
type Reader = { readonly client: Client; readonly isSignedIn: boolean; readonly chunks: Chunks };

/** Checks a report after the page is painted, because each signature takes milliseconds. Keep `source` the same object between renders. */
export function useReportCheck(report: ReportReading, claim: Claim | undefined, source: ReportSource): ReportCheck {
  const { session, chunks } = useExplorer();
  const client = session.client.value;
  const isSignedIn = session.userId.value !== undefined;
  const isExample = source.kind === 'example';
  const [signers, reload] = useLoaded(
    async (signal) => (isExample ? source.signers : (await client.signers({ signal })).signers),
    [client, isExample],
  );
  const [checked, setChecked] = useState<{ readonly of: ReportReading; readonly check: ReportCheck } | undefined>();
  useEffect(() => {
    const abort = new AbortController();
    const notify = (check: ReportCheck): void => {
      if (!abort.signal.aborted) setChecked({ of: report, check });
    };
    if (signers.phase === 'loading') notify({ phase: 'checking' });
    if (signers.phase === 'failed') notify({ phase: 'unavailable', error: signers.error, retry: reload });
    if (signers.phase === 'ready')
      checkReport({ report, claim, source }, signers.value, { client, isSignedIn, chunks }, notify, abort.signal).catch(
        (error: unknown) => notify({ phase: 'unavailable', error, retry: reload }),
      );
    return () => abort.abort();
  }, [report, claim, source, signers, client, isSignedIn, chunks, reload]);
  // Until the effect has run, the last check is that of another report.
  return checked?.of === report ? checked.check : { phase: 'checking' };
}

const checkReport = async (
  subject: Subject,
  signers: SignerSetsJson,
  reader: Reader,
  notify: (check: ReportCheck) => void,
  signal: AbortSignal,
): Promise<void> => {
  const { report, claim } = subject;
  const { proveReport } = await reader.chunks.load(() => import('./proof.ts'));
  await new Promise((done) => setTimeout(done));
  if (signal.aborted) return;
  const proof = proveReport(report.full, signers, claim, report.window);
  if (proof.ok || proof.kind === 'claim_mismatch')
    return notify({ phase: 'done', proof, comparison: { kind: 'none' } });
  notify({ phase: 'done', proof, comparison: { kind: 'comparing' } });
  const isSigned = ({ full }: ReportReading): boolean => proveReport(full, signers).ok;
  const comparison = await compareWithSigned(subject, isSigned, reader, signal);
  // With an unknown signer set, nothing says that the report was altered.
  const isOpen = proof.kind === 'unknown_config_digest' && comparison.kind === 'unknown';
  notify({ phase: 'done', proof, comparison: isOpen ? { kind: 'none' } : comparison });
};

const unknown = (why: string, canSignIn = false): Comparison => ({ kind: 'unknown', why, canSignIn });

const compareWithSigned = async (
  { report, source }: Subject,
  isSigned: (report: ReportReading) => boolean,
  { client, isSignedIn }: Reader,
  signal: AbortSignal,
): Promise<Comparison> => {
  const original = source.kind === 'server' || source.original === undefined ? undefined : readReport(source.original);
  if (original !== undefined && isSigned(original)) return { kind: 'different', signed: original };
  if (source.kind === 'server')
    return unknown('This is the server’s own copy, so there is no other report to compare it with. Do not use it.');
  if (source.kind === 'example') return unknown('There is no signed report to compare it with.');
  if (!isSignedIn) return unknown('Sign in to compare it with this server’s report of the same stream and time.', true);
  try {
    const found = (await readCandidates(client, report, signal)).find(
      (candidate) => isSameReport(candidate, report) && isSigned(candidate),
    );
    if (found !== undefined) return { kind: 'different', signed: found };
    return unknown(
      'This server has no signed report of the same stream and time, so the page cannot tell what was altered.',
    );
  } catch (error) {
    return unknown(
      `The page cannot tell what was altered, because it could not read this server’s report: ${explainError(error).problem}`,
    );
  }
};

const missCodes: readonly string[] = ['report_not_found', 'timestamp_out_of_bounds', 'malformed_argument'];

/** The server's reports at both ends of the window: one of the two times may be what was altered. */
const readCandidates = async (
  client: Pick<Client, 'at'>,
  { feedId, window }: ReportReading,
  signal: AbortSignal,
): Promise<readonly ReportReading[]> => {
  if (window === undefined) return [];
  const seconds = new Set([window.observationsMs, window.validFromMs].map((ms) => Math.floor(ms / 1_000)));
  const found = await Promise.all(
    [...seconds].map((second) =>
      client.at(feedId, second, { signal }).then(
        ({ report }) => [readReport(report.fullReport)],
        (error: unknown) => {
          if (error instanceof SealpostError && missCodes.includes(error.code)) return [];
          throw error;
        },
      ),
    ),
  );
  return found.flat();
};

/** Whether one was made from the other: the same window, or a signature in common. */
const isSameReport = (signed: ReportReading, here: ReportReading): boolean => {
  const windowOf = ({ window }: ReportReading): string => `${window?.validFromMs} ${window?.observationsMs}`;
  const halves = new Set(signed.full.signatures.map(({ r }) => r));
  return windowOf(signed) === windowOf(here) || here.full.signatures.some(({ r }) => halves.has(r));
};
