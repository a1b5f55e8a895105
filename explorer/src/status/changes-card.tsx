// What changed: streams that came, ended or are about to, and signer sets that were added or retired, from the server's status.
import type { Body } from '@sealpost/protocol';
import { useExplorer } from '../state/explorer.ts';
import { streamHref } from '../state/router.ts';
import { Pill, type PillKind, Time } from '../ui/components.tsx';
import { shortId } from '../ui/format.ts';

type Change = Body<'Change'>;

const kinds: Readonly<Record<Change['kind'], { readonly text: string; readonly pill: PillKind }>> = {
  stream_added: { text: 'Stream added', pill: 'ok' },
  decommission_expected: { text: 'End expected', pill: 'warn' },
  stream_decommissioned: { text: 'Stream ended', pill: 'neutral' },
  signer_set_added: { text: 'Signer set added', pill: 'ok' },
  signer_set_retired: { text: 'Signer set retired', pill: 'neutral' },
};

/** `changes` is undefined if the server is of a release that has none. */
export function ChangesCard({ changes }: { readonly changes: readonly Change[] | undefined }) {
  if (changes === undefined) return null;
  return (
    <section class="card stack" aria-labelledby="changes-title">
      <h2 id="changes-title">What changed</h2>
      {changes.length === 0 ? (
        <p class="muted">No stream or signer set changed in the last 30 days, and no stream is about to end.</p>
      ) : (
        <>
          <p class="small muted">The last 30 days, and ends expected in the next 90; the 10 nearest of each kind.</p>
          <ul class="status-changes">
            {changes.map((change) => (
              <ChangeRow key={`${change.kind} ${change.feedID ?? change.configDigest}`} change={change} />
            ))}
          </ul>
        </>
      )}
    </section>
  );
}

const ChangeRow = ({ change: { at, kind, feedID, name, configDigest } }: { readonly change: Change }) => {
  const { text, pill } = kinds[kind] ?? { text: kind, pill: 'neutral' }; // a later server may have more of them
  return (
    <li>
      <Time ms={Math.floor(Date.parse(at) / 1_000) * 1_000} />
      <Pill kind={pill}>{text}</Pill>
      <span>
        {feedID !== undefined && <StreamName feedId={feedID} name={name} />}
        {configDigest !== undefined && <code title={configDigest}>{shortId(configDigest)}</code>}
        {kind === 'stream_decommissioned' && <span class="muted"> live → decommissioned</span>}
      </span>
    </li>
  );
};

const StreamName = ({ feedId, name }: { readonly feedId: string; readonly name: string | undefined }) => {
  const { catalog } = useExplorer();
  const entry = catalog.find(feedId);
  const text = entry === undefined ? name : `${entry.baseAsset}/${entry.quoteAsset}`;
  return (
    <>
      <a href={streamHref(feedId)}>{text ?? shortId(feedId)}</a>
      {name !== undefined && name !== text && <span class="small muted"> {name}</span>}
    </>
  );
};
