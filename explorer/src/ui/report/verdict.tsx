// The verdict card: the verdict in one sentence, a line per signature, and the signer set it was checked against.
import type { SignerSetsJson } from '@sealpost/protocol';
import { useEffect, useState } from 'preact/hooks';
import { useExplorer } from '../../state/explorer.ts';
import { Copy, Failure } from '../components.tsx';
import { useLoaded } from '../loaded.ts';
import { type ByteLink, linkEvents } from './byte-link.ts';
import { signatureLink } from './bytes.ts';
import { choose } from './field-table.tsx';
import type { Claim, Proof, SignatureLine, SignatureState } from './proof.ts';
import type { ReadReport } from './reading.ts';

type VerdictProps = { readonly report: ReadReport; readonly claim: Claim | undefined; readonly link: ByteLink };

/** Verifies the report after the page is painted. */
export const ReportVerdict = ({ report, claim, link }: VerdictProps) => {
  const { session } = useExplorer();
  const client = session.client.value;
  const [signers, reload] = useLoaded(async (signal) => (await client.signers({ signal })).signers, [client]);
  const proof = useProof(report, claim, signers.phase === 'ready' ? signers.value : undefined);
  const count = report.full.signatures.length;
  return (
    <section class="card verdict" data-state={stateOf(proof)} aria-labelledby="proof-title">
      <h2 id="proof-title" class="unseen">
        Proof
      </h2>
      {signers.phase === 'failed' && (
        <>
          <Failure error={signers.error} retry={reload} />
          <p class="muted">The signatures cannot be checked without the server’s signer sets.</p>
        </>
      )}
      {signers.phase !== 'failed' && (
        <div class="verdict-head" role="status">
          <VerdictIcon state={stateOf(proof)} />
          <div>
            <p class="verdict-title">{proof?.title ?? 'Checking'}</p>
            <p class="verdict-sentence">
              {proof?.sentence ??
                `Recovering the signers of ${count} signature${count === 1 ? '' : 's'} in this browser.`}
            </p>
          </div>
        </div>
      )}
      {proof !== undefined && (
        <>
          <ol class="signature-list" aria-label="Signatures">
            {proof.lines.map((line) => (
              <Signature key={line.number} line={line} link={link} />
            ))}
          </ol>
          <SetFacts proof={proof} configDigest={report.full.context.configDigest} />
        </>
      )}
    </section>
  );
};

/** The proof once the signers are loaded; computed after the next paint, because each signature takes milliseconds. */
const useProof = (
  report: ReadReport,
  claim: Claim | undefined,
  signers: SignerSetsJson | undefined,
): Proof | undefined => {
  const [proof, setProof] = useState<Proof | undefined>(undefined);
  useEffect(() => {
    let isWanted = true;
    setProof(undefined);
    const prove = async (): Promise<void> => {
      if (signers === undefined) return;
      const { proveReport } = await import('./proof.ts');
      await new Promise((done) => setTimeout(done));
      if (isWanted) setProof(proveReport(report.full, signers, claim, report.decoded));
    };
    void prove();
    return () => {
      isWanted = false;
    };
  }, [report, claim, signers]);
  return proof;
};

type VerdictState = 'pending' | 'verified' | 'refused';

const stateOf = (proof: Proof | undefined): VerdictState =>
  proof === undefined ? 'pending' : proof.ok ? 'verified' : 'refused';

const VerdictIcon = ({ state }: { readonly state: VerdictState }) => (
  <svg class="verdict-icon" viewBox="0 0 32 32" fill="none" stroke="currentColor" stroke-width="2.5" aria-hidden="true">
    {state === 'pending' ? (
      <circle cx="16" cy="16" r="12" stroke-dasharray="3 4" />
    ) : (
      <>
        <path d="M16 3 27 7v9c0 6.5-4.500 10.800-11 13C9.500 26.800 5 22.500 5 16V7Z" />
        {state === 'verified' ? <path d="m10.500 16 4 4 7-8" /> : <path d="m12 11.500 8 9m0-9-8 9" />}
      </>
    )}
  </svg>
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

const SetFacts = ({ proof, configDigest }: { readonly proof: Proof; readonly configDigest: string }) => {
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
        in this browser, from the bytes below, against this server’s <a href="/signers.json">/signers.json</a>.
      </dd>
    </dl>
  );
};
