// The status page: the server's own status, polled every few seconds, since when it is unreachable, lag and availability per stream, and what changed.
import { type Body, skewMaxMs } from '@sealpost/protocol';
import { useExplorer } from '../state/explorer.ts';
import { streamHref } from '../state/router.ts';
import { explainError } from '../state/session.ts';
import { Copy, Failure, Loading, Notice, Pill, Time, useTitle } from '../ui/components.tsx';
import { formatAge, formatCount, shortId } from '../ui/format.ts';
import { type Renewed, useRenewed } from '../ui/polling.ts';
import { AvailabilityCard } from './availability-card.tsx';
import { ChangesCard } from './changes-card.tsx';
import { explainClock, readStatus, type ServerStatus, splitReason } from './server-status.ts';
import '../styles/status.css';

const everyMs = 3_000;
const signersEveryMs = 60_000;

export function StatusPage() {
  const { session } = useExplorer();
  useTitle('Status');
  const state = useRenewed((signal) => readStatus(session.client.peek(), Date.now, signal), everyMs, []);
  return (
    <div class="stack">
      <div class="row status-head">
        <h1>Status</h1>
        <StatePill state={state} />
      </div>
      <p class="muted">
        Reported by the server and refreshed every {everyMs / 1_000} seconds. Also at{' '}
        <a href="/status.json">/status.json</a>.
      </p>
      {state.failure !== undefined && <Unreachable failure={state.failure} hasValue={state.value !== undefined} />}
      {state.value === undefined && state.failure === undefined && <Loading label="Loading the status" lines={6} />}
      {state.value !== undefined && <StatusParts server={state.value} isOld={state.failure !== undefined} />}
      <div class={state.failure === undefined ? '' : 'status-old'}>
        <AvailabilityCard />
      </div>
      <ChangesCard changes={state.value?.status.changes} />
      <SignerSets />
    </div>
  );
}

const StatePill = ({ state: { value, failure } }: { readonly state: Renewed<ServerStatus> }) => {
  if (failure !== undefined) return <Pill kind="bad">Unreachable</Pill>;
  if (value === undefined) return <Pill>Loading…</Pill>;
  return value.status.ready ? <Pill kind="ok">Ready</Pill> : <Pill kind="bad">Not ready</Pill>;
};

const Unreachable = ({
  failure: { error, sinceMs },
  hasValue,
}: {
  readonly failure: NonNullable<Renewed<unknown>['failure']>;
  readonly hasValue: boolean;
}) => {
  const { clock } = useExplorer();
  void clock.nowMs.value; // renders again as time passes
  const { problem } = explainError(error);
  return (
    <Notice kind="error" title={`Unreachable for ${formatAge(Date.now() - sinceMs)}`}>
      <p>{problem}</p>
      <p>
        Since <Time ms={Math.floor(sinceMs / 1_000) * 1_000} both />. Retrying every {everyMs / 1_000} seconds
        {hasValue ? '; the last known status is below' : ''}. Check your connection, then the server process and its
        log.
      </p>
    </Notice>
  );
};

const StatusParts = ({
  server: { status, clock },
  isOld,
}: {
  readonly server: ServerStatus;
  readonly isOld: boolean;
}) => (
  <div class="stack">
    {!status.ready && <Reasons reasons={status.reasons} />}
    <Tiles status={status} isOld={isOld} />
    <Behind streams={status.streams} />
    <ServerFacts status={status} clock={clock} />
  </div>
);

const Reasons = ({ reasons }: { readonly reasons: readonly string[] }) => (
  <Notice kind="error" title="Not ready">
    <ul class="status-reasons">
      {reasons.map((reason) => {
        const { subject, text } = splitReason(reason);
        return (
          <li key={reason}>
            {subject !== undefined && <strong>{subject}: </strong>}
            {text}
          </li>
        );
      })}
    </ul>
  </Notice>
);

const Tile = ({
  name,
  value,
  note,
  kind = '',
}: {
  readonly name: string;
  readonly value: string;
  readonly note: string;
  readonly kind?: string;
}) => (
  <div class="card status-tile">
    <dt>{name}</dt>
    <dd class={kind}>{value}</dd>
    <dd class="small muted">{note}</dd>
  </div>
);

const Tiles = ({
  status: { streams, ingestLagSeconds, uptimeSeconds, ready },
  isOld,
}: {
  readonly status: Body<'Status'>;
  /** Nothing is known about the server now: figures are the last known ones, in gray. */
  readonly isOld: boolean;
}) => (
  <dl class="status-tiles">
    <Tile
      name="Readiness"
      value={isOld ? 'Unknown' : ready ? 'Ready' : 'Not ready'}
      note={
        isOld ? `Last known: ${ready ? 'ready' : 'not ready'}` : ready ? 'All checks pass' : 'See the reasons above'
      }
      kind={isOld ? 'muted' : ready ? 'ok' : 'bad'}
    />
    <Tile
      name="Ingest lag"
      value={ingestLagSeconds === null ? 'no report yet' : `${Math.round(ingestLagSeconds * 10) / 10} s`}
      note="Age of the newest observation in any stream"
      kind={isOld ? 'muted' : ''}
    />
    <Tile
      name="Streams behind"
      value={`${formatCount(streams.behind)} of ${formatCount(streams.live)} live`}
      note="No observation in the last minute"
      kind={isOld ? 'muted' : streams.behind > 0 ? 'warn' : ''}
    />
    <Tile
      name="Uptime"
      value={formatAge(uptimeSeconds * 1_000)}
      note="Since the process started serving"
      kind={isOld ? 'muted' : ''}
    />
  </dl>
);

const Behind = ({ streams: { behind, behindFeedIDs } }: { readonly streams: Body<'Status'>['streams'] }) => {
  const { catalog } = useExplorer();
  if (behind === 0) return null;
  const more = behind - behindFeedIDs.length;
  return (
    <section class="card stack" aria-labelledby="behind-title">
      <h2 id="behind-title">Streams behind</h2>
      <ul class="status-behind">
        {behindFeedIDs.map((feedId) => (
          <li key={feedId}>
            <a href={streamHref(feedId)}>{catalog.find(feedId)?.name ?? shortId(feedId)}</a>{' '}
            <code class="muted status-id">{shortId(feedId)}</code>
          </li>
        ))}
      </ul>
      {more > 0 && <p class="small muted">and {formatCount(more)} more</p>}
    </section>
  );
};

const ServerFacts = ({ status, clock }: { readonly status: Body<'Status'>; readonly clock: ServerStatus['clock'] }) => {
  const { text, isBad } = explainClock(clock);
  return (
    <section class="card stack" aria-labelledby="server-title">
      <h2 id="server-title">Server</h2>
      <dl class="facts">
        <dt>Release</dt>
        <dd>{status.version}</dd>
        <dt>Network</dt>
        <dd>{status.network}</dd>
        <dt>Streams</dt>
        <dd>
          {formatCount(status.streams.total)} public, {formatCount(status.streams.live)} live
        </dd>
        <dt>Server time</dt>
        <dd>
          <Time ms={Math.floor(status.serverTimeMs / 1_000) * 1_000} both />
        </dd>
        <dt>Your clock</dt>
        <dd class={isBad ? 'bad' : ''}>
          {text}
          {isBad &&
            `. Correct this computer’s clock: the server rejects requests signed more than ${skewMaxMs / 1_000} s off.`}
        </dd>
      </dl>
    </section>
  );
};

const SignerSets = () => {
  const { session } = useExplorer();
  const { value, failure } = useRenewed(
    async (signal) => (await session.client.peek().signers({ signal })).signers,
    signersEveryMs,
    [],
  );
  const sets = value === undefined ? [] : Object.entries(value);
  return (
    <section class="card stack" aria-labelledby="signers-title">
      <h2 id="signers-title">Signer sets</h2>
      <p class="small muted">
        The oracles whose signatures make a report valid. Any f + 1 of a set’s n signers form a quorum.
      </p>
      {value === undefined && failure === undefined && <Loading label="Loading the signer sets" lines={2} />}
      {value === undefined && failure !== undefined && <Failure error={failure.error} />}
      {value !== undefined && sets.length === 0 && (
        <p>No signer sets. The server rejects every report until one is added.</p>
      )}
      {sets.map(([digest, { f, addresses }]) => (
        <SignerSet key={digest} digest={digest} f={f} addresses={addresses} />
      ))}
    </section>
  );
};

const SignerSet = ({
  digest,
  f,
  addresses,
}: {
  readonly digest: string;
  readonly f: number;
  readonly addresses: readonly string[];
}) => (
  <div class="signer-set">
    <dl class="facts">
      <dt>Config digest</dt>
      <dd class="row">
        <code title={digest}>{shortId(digest)}</code>
        <Copy text={digest} label="Copy config digest" />
      </dd>
      <dt>Quorum</dt>
      <dd>
        {f + 1} of {addresses.length} (f = {f}, n = {addresses.length})
      </dd>
    </dl>
    <details>
      <summary>Addresses of the {addresses.length} signers</summary>
      <ol class="signer-addresses small">
        {addresses.map((address) => (
          <li key={address}>
            <code>{address}</code>
          </li>
        ))}
      </ol>
    </details>
  </div>
);
