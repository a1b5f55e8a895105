// The signatures of a report: a line for each with its signer, and the signer set that they were checked against.
import { Copy } from '../components.tsx';
import { type ByteLink, linkEvents } from './byte-link.ts';
import { signatureLink } from './bytes.ts';
import { choose } from './field-table.tsx';
import type { Proof, SignatureLine, SignatureState } from './proof.ts';
import type { ReportReading } from './reading.ts';
import type { ReportCheck } from './report-check.ts';

type SignaturesProps = {
  readonly report: ReportReading;
  readonly check: ReportCheck;
  readonly link: ByteLink;
  /** The signer set is that of an example, not of this server. */
  readonly isExample: boolean;
};

export const ReportSignatures = ({ report, check, link, isExample }: SignaturesProps) => (
  <section class="card proof" aria-labelledby="signatures-title">
    <h2 id="signatures-title">Signatures</h2>
    {check.phase === 'done' ? (
      <>
        <ol class="signature-list" aria-label="Signatures">
          {check.proof.lines.map((line) => (
            <Signature key={line.number} line={line} link={link} />
          ))}
        </ol>
        {check.proof.lines.length === 0 && <p>The report has no signature.</p>}
        <SetFacts proof={check.proof} configDigest={report.full.context.configDigest} isExample={isExample} />
      </>
    ) : (
      <p class="muted">
        {check.phase === 'checking'
          ? 'Recovering the signers.'
          : `${report.full.signatures.length} signatures, not checked: the signer sets could not be loaded.`}
      </p>
    )}
  </section>
);

const Signature = ({ line, link }: { readonly line: SignatureLine; readonly link: ByteLink }) => {
  const { number, address, state, text } = line;
  const of = signatureLink(number - 1);
  const { onPointerEnter, onPointerLeave, onFocus, onBlur } = linkEvents(link, of);
  return (
    <li
      class={`signature ${state} ${link.active.value === of ? 'active' : ''}`}
      onPointerEnter={onPointerEnter}
      onPointerLeave={onPointerLeave}
    >
      <SignatureIcon state={state} />
      <button
        type="button"
        class="field-name"
        aria-pressed={link.chosen.value === of}
        aria-label={`Signature ${number}: highlight its bytes`}
        onFocus={onFocus}
        onBlur={onBlur}
        onClick={() => choose(link, of)}
      >
        Signature {number}
      </button>
      <span class="signature-address">
        {address === undefined ? (
          <span class="muted">no signer</span>
        ) : (
          <>
            <code>{address}</code>
            <Copy text={address} label={`Copy the address of signer ${number}`} />
          </>
        )}
      </span>
      <span class="signature-text">{text}</span>
    </li>
  );
};

const signatureMarks: Readonly<Partial<Record<SignatureState, string>>> = {
  registered: 'm3 8.500 3.500 3.500L13 4.500',
  unjudged: 'M3 8h10',
};

const SignatureIcon = ({ state }: { readonly state: SignatureState }) => (
  <svg class="signature-icon" viewBox="0 0 16 16" fill="none" stroke="currentColor" stroke-width="2" aria-hidden="true">
    <path d={signatureMarks[state] ?? 'm4 4 8 8m0-8-8 8'} />
  </svg>
);

type FactsProps = { readonly proof: Proof; readonly configDigest: string; readonly isExample: boolean };

const SetFacts = ({ proof, configDigest, isExample }: FactsProps) => {
  const { signerSet, digest } = proof;
  return (
    <dl class="facts small set-facts">
      <dt>Config digest</dt>
      <dd>
        <code>{configDigest}</code>
        <Copy text={configDigest} label="Copy config digest" />
      </dd>
      <dt>Signer set</dt>
      <dd>
        {signerSet === undefined
          ? 'This server has none with that config digest.'
          : `${signerSet.addresses.length} oracles, of which up to f = ${signerSet.f} may be faulty; exactly ${signerSet.f + 1} sign each report.`}
      </dd>
      <dt>Signed digest</dt>
      <dd>
        <code>{digest}</code>
        <Copy text={digest} label="Copy signed digest" />
      </dd>
      <dt>Checked</dt>
      <dd>
        in this browser, from the bytes below, against{' '}
        {isExample ? (
          <>
            the signer set of the example, which is in <code>protocol/src/vectors/verification.json</code>.
          </>
        ) : (
          <>
            this server’s <a href="/signers.json">/signers.json</a>.
          </>
        )}
      </dd>
    </dl>
  );
};
