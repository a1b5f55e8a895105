// What tests have a client do in a page. Arguments and results are JSON.
import {
  type Client,
  type ClientOptions,
  createClient,
  decode,
  type PagesOptions,
  type ReportStream,
  SealpostError,
  type StreamOptions,
  type StreamState,
  verify,
  withFeeToken,
} from '@sealpost/client';

/** `clockMs` stops the client's clock. */
export type SessionOptions = Pick<ClientOptions, 'baseUrl' | 'userId' | 'secret'> & { readonly clockMs?: number };

/** The calls that are one request each. */
export type Read = Exclude<keyof Client, 'pages' | 'stream'>;

type AnyCall = (...args: readonly unknown[]) => Promise<unknown>;

const everythingOf = (error: unknown): string => {
  const { stack, cause } = Object(error) as { readonly stack?: unknown; readonly cause?: unknown }; // shown as text only
  return [String(error), String(stack), JSON.stringify(error), cause === undefined ? '' : everythingOf(cause)].join(
    '\n',
  );
};

// Twelve words after 0x: eight of envelope, then feed ID, window, and the fee, of which the last digit becomes another.
const withOtherFee = (fullReport: string): string =>
  fullReport.replace(/^(0x.{767})(.)/, (_, before: string, digit: string) => before + (digit === '7' ? '8' : '7'));

/** One client, with at most one stream at a time. */
export const createSession = ({ clockMs, ...options }: SessionOptions) => {
  const warnings: string[] = [];
  const client = createClient({
    ...options,
    ...(clockMs !== undefined && { nowMs: () => clockMs }),
    onWarning: ({ code }) => void warnings.push(code),
  });
  const states: StreamState[] = [];
  let stream: ReportStream | undefined;
  const call = (name: Read, ...args: readonly unknown[]) => (client[name] as AnyCall)(...args); // tests pass what each takes

  return {
    call,
    /** The error of a call that fails, and all that can be printed of it. */
    failure: (name: Read, ...args: readonly unknown[]) =>
      call(name, ...args).then(
        () => ({ error: undefined, printed: '' }),
        (error: unknown) => ({
          error: error instanceof SealpostError ? error : undefined,
          printed: everythingOf(error),
        }),
      ),
    pages: async (feedId: string, span: PagesOptions) => {
      const sizes: number[] = [];
      const reports: unknown[] = [];
      for await (const page of client.pages(feedId, span)) {
        sizes.push(page.reports.length);
        reports.push(...page.reports);
      }
      return { sizes, reports };
    },
    /** Verifies, decodes and makes ready for a contract what the server has newest. */
    prove: async (feedId: string, feeToken: string) => {
      const [{ report }, { signers }] = await Promise.all([client.latest(feedId), client.signers()]);
      return {
        verdict: verify(report, signers),
        altered: verify({ ...report, fullReport: withOtherFee(report.fullReport) }, signers),
        moved: verify({ ...report, observationsTimestamp: report.observationsTimestamp + 1 }, signers),
        decoded: decode(report),
        argument: withFeeToken(report, feeToken),
        appended: withFeeToken(report, feeToken, 'appended'),
      };
    },
    warnings: async () => warnings,
    openStream: async (feedIds: readonly string[], live: StreamOptions) => {
      stream = client.stream(feedIds, { ...live, onState: (state) => void states.push(state) });
    },
    receive: async (count: number) => {
      const reports: unknown[] = [];
      while (reports.length < count) reports.push((await stream?.next())?.value);
      return reports;
    },
    /** Every state that the stream told. */
    states: async () => states,
    close: async () => stream?.close(),
  };
};

export type Session = ReturnType<typeof createSession>;

/** Asks a session by name; the answer is JSON, with integers beyond numbers as text. */
export const askSession = async (session: Session, name: keyof Session, args: readonly unknown[]): Promise<string> => {
  const result = await (session[name] as AnyCall)(...args); // the arguments come from a typed call, through JSON
  return JSON.stringify(result ?? null, (_, value) => (typeof value === 'bigint' ? String(value) : value));
};
