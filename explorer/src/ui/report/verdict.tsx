// The verdict on a report, above everything else on its page: in a few words, in a sentence, and what was altered if that is known.
import { useRef } from 'preact/hooks';
import { explainError } from '../../state/session.ts';
import { Pill, type PillKind } from '../components.tsx';
import { unknownFieldsText } from '../price/unknown-fields.ts';
import { SignInButton } from '../sign-in-dialog.tsx';
import type { Difference } from './difference.ts';
import type { ReportReading } from './reading.ts';
import { type Comparison, type ReportCheck, type VerdictState, verdictStateOf } from './report-check.ts';

type VerdictProps = {
  readonly report: ReportReading;
  readonly check: ReportCheck;
  readonly difference: Difference | undefined;
  /** The signer set is that of an example, not of this server. */
  readonly isExample: boolean;
};

export function ReportVerdict({ report, check, difference, isExample }: VerdictProps) {
  const { title, sentence } = textsOf(report, check);
  const section = useRef<HTMLElement>(null);
  const state = verdictStateOf(check);
  return (
    <section class="card verdict" data-state={state} aria-labelledby="verdict-title" tabIndex={-1} ref={section}>
      <div class="verdict-head" role="status">
        <VerdictIcon state={state} />
        <div>
          <h2 id="verdict-title" class="verdict-title">
            {title} {isExample && <Pill kind="accent">example</Pill>}
          </h2>
          <p class="verdict-sentence">{sentence}</p>
          {isExample && (
            <p class="muted small">Checked against the example’s own signer set, not against this server’s.</p>
          )}
          {check.phase === 'done' && <ComparisonText comparison={check.comparison} difference={difference} />}
        </div>
      </div>
      {check.phase === 'unavailable' && (
        <button
          type="button"
          onClick={() => {
            section.current?.focus(); // the button goes while the signers load
            check.retry();
          }}
        >
          Try again
        </button>
      )}
    </section>
  );
}

/** The verdict in a few words and in a sentence. */
const textsOf = (
  { decoded, full, feedId }: ReportReading,
  check: ReportCheck,
): { readonly title: string; readonly sentence: string } => {
  if (check.phase === 'checking') {
    const count = full.signatures.length;
    const sentence = `Recovering the signers of ${count} signature${count === 1 ? '' : 's'} in this browser.`;
    return { title: 'Checking', sentence };
  }
  if (check.phase === 'unavailable') {
    const { problem } = explainError(check.error);
    return {
      title: 'Cannot be verified: signers unavailable',
      sentence: `The signer sets could not be loaded, so nothing is known about the signatures. ${problem}`,
    };
  }
  const { proof, comparison } = check;
  if (proof.ok && decoded === undefined)
    return {
      title: 'Verified, but not decoded',
      sentence: `${proof.sentence} The fields of the report are not known: ${unknownFieldsText(feedId)}.`,
    };
  const isAltered = proof.kind === 'altered_report' && comparison.kind === 'different';
  return { title: isAltered ? 'Not verified: altered' : proof.title, sentence: proof.sentence };
};

/** Differences that are written out. */
const differencesMax = 3;

type ComparisonProps = { readonly comparison: Comparison; readonly difference: Difference | undefined };

const ComparisonText = ({ comparison, difference }: ComparisonProps) => {
  switch (comparison.kind) {
    case 'none':
      return null;
    case 'comparing':
      return <p class="muted small">Looking for the signed report, to compare.</p>;
    case 'different':
      return difference === undefined ? null : <DifferenceText difference={difference} />;
    case 'unknown':
      return (
        <p class="small verdict-unknown">
          {comparison.why} {comparison.canSignIn && <SignInButton />}
        </p>
      );
  }
};

const DifferenceText = ({ difference: { values } }: { readonly difference: Difference }) => {
  if (values.length === 0) return <p class="small">It is the same as the signed report.</p>;
  const more = values.slice(differencesMax);
  return (
    <>
      <dl class="difference small">
        {values.slice(0, differencesMax).map(({ name, link, signed, here }) => (
          <div key={link}>
            <dt>
              <code>{name}</code> was altered
            </dt>
            <dd>
              <span class="muted">signed:</span> <span class="difference-text">{signed}</span>
            </dd>
            <dd>
              <span class="muted">here:</span> <span class="difference-text bad">{here}</span>
            </dd>
          </div>
        ))}
      </dl>
      {more.length > 0 && <p class="small">Altered too: {more.map(({ name }) => name).join(', ')}.</p>}
    </>
  );
};

const VerdictIcon = ({ state }: { readonly state: VerdictState }) => (
  <svg class="verdict-icon" viewBox="0 0 32 32" fill="none" stroke="currentColor" stroke-width="2.5" aria-hidden="true">
    {state === 'pending' ? (
      <circle cx="16" cy="16" r="12" stroke-dasharray="3 4" />
    ) : (
      <>
        <path d="M16 3 27 7v9c0 6.5-4.500 10.800-11 13C9.500 26.800 5 22.500 5 16V7Z" />
        <path d={verdictMarks[state]} />
      </>
    )}
  </svg>
);

const verdictMarks: Readonly<Record<Exclude<VerdictState, 'pending'>, string>> = {
  verified: 'm10.500 16 4 4 7-8',
  refused: 'm12 11.500 8 9m0-9-8 9',
  unknown: 'M16 10v8m0 3v2.500',
};

const trustTexts: Readonly<Record<VerdictState, readonly [kind: PillKind, text: string]>> = {
  pending: ['neutral', 'checking'],
  verified: ['ok', 'verified'],
  refused: ['bad', 'not verified'],
  unknown: ['warn', 'not verified'],
};

/** Next to a value of the report: whether it is verified. */
export function TrustPill({
  state,
  isExample = false,
}: {
  readonly state: VerdictState;
  readonly isExample?: boolean;
}) {
  const [kind, text] = trustTexts[state];
  return isExample && state === 'verified' ? <Pill kind="accent">example</Pill> : <Pill kind={kind}>{text}</Pill>;
}
