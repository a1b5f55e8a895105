// The private listener of a node, and the one of /ingest where it has its own address.
import { keepCertificate } from '../cluster/primary.ts';
import type { Settings } from '../config/config.ts';
import { type MirrorRequest, resumeMirror } from '../ingest/mirror.ts';
import { createIngestHandler } from '../ingest/sources/listener.ts';
import { type OpsOptions, openOpsListener } from '../ops/ops.ts';
import { describeCertificate, type TlsPair } from '../runtime/tls-files.ts';
import type { NodeHooks } from './hooks.ts';
import type { WritePath } from './write-path.ts';

export type PrivateListeners = {
  readonly url: string;
  /** Where /ingest is, if not at `url`. */
  readonly ingestUrl: string | undefined;
  readonly close: (deadlineMs: number) => Promise<void>;
  readonly reloadTls: () => void;
  readonly certificateEndMs: () => number | undefined;
};

export type PrivateListenerParts = Required<Pick<OpsOptions, 'checks' | 'degraded' | 'metrics' | 'observe'>> & {
  readonly settings: Settings;
  readonly hooks: NodeHooks;
  readonly write: WritePath;
  /** The token of POST /ingest; without one the path does not exist. */
  readonly ingestToken: string | undefined;
  /** Aborted once the public listener is drained. */
  readonly stopping: AbortSignal;
};

/** Opens both listeners. If the second fails to open, it closes the first. */
export async function openPrivateListeners(parts: PrivateListenerParts): Promise<PrivateListeners> {
  const { settings, hooks, observe, checks, degraded, metrics } = parts;
  const { opsTlsCert: tlsCert, opsTlsKey: tlsKey, opsListen, opsHosts, ingestListen } = settings;
  const certificate = keepCertificate({ tlsCert, tlsKey }, observe);
  const ingest = createIngestRoute(parts);
  const shared = {
    ...opsListen,
    keepsProcess: hooks.isEmbedded !== true,
    hosts: opsHosts,
    tls: certificate.inUse(),
    checks,
    degraded,
    metrics,
    observe,
    ...(hooks.privateRoute && { further: hooks.privateRoute }),
  };
  const ops = await openOpsListener(ingestListen || ingest === undefined ? shared : { ...shared, ingest });
  const second = { ...shared, ...ingestListen, ...(ingest && { ingest }), isForIngest: true };
  const own =
    ingestListen && (await openOpsListener(second).catch((error) => ops.close(0).then(() => Promise.reject(error))));
  const all = own === undefined ? [ops] : [ops, own];
  return {
    url: ops.url,
    ingestUrl: own?.url,
    close: async (deadlineMs) => void (await Promise.all(all.map((one) => one.close(deadlineMs)))),
    certificateEndMs: certificate.endMs,
    reloadTls: () => {
      if (certificate.inUse() === undefined || !certificate.renew()) return;
      const renewed = certificate.inUse() as TlsPair; // checked above
      for (const one of all) one.useTls(renewed);
      const shown = describeCertificate(renewed.cert);
      observe({ kind: 'reloaded', settings: ['opsTlsCert', 'opsTlsKey'], certificate: shown });
    },
  };
}

const createIngestRoute = ({ settings, hooks, write, ingestToken, observe, stopping }: PrivateListenerParts) => {
  if (ingestToken === undefined) return undefined;
  const { store, ingest } = write;
  const nowMs = hooks.reportNowMs ?? Date.now;
  const message = 'A sender of reports presented a wrong ingest token.';
  return createIngestHandler({
    ingest,
    token: ingestToken,
    rejected: (address) => observe({ kind: 'warning', code: 'ingest_token_rejected', message, address }),
    resume: (request: MirrorRequest) =>
      resumeMirror(
        { store, nowMs: nowMs(), retentionDays: settings.retentionDays, actor: 'private listener' },
        request,
      ),
    stopping,
  });
};
