// Verifies a report in a web page: who signed it, and whether they are a quorum of the signers you trust.
// Run: npx esbuild examples/verify-in-browser.ts --bundle --format=esm --conditions=source --outdir=examples --servedir=examples
// and open verify-in-browser.html at the address that it prints. Nothing is written; the page is built on request. (In a project that
// has installed @sealpost/client, leave out --conditions=source, which selects the sources here.)
// Paste a report, or fetch one with the address and credentials that `npm start` prints: they stay in the page. In a page for others, let a
// server fetch it: everyone who opens a page can read a secret in it. Verifying needs no secret.
import { createClient, formatDecimal, SealpostError, type Verdict, verify } from '@sealpost/client';

type SignerSetsJson = Exclude<Parameters<typeof verify>[1], ReadonlyMap<string, unknown>>;

const field = <T extends HTMLElement = HTMLInputElement>(id: string): T => document.getElementById(id) as T; // all are in the page
const [reportBox, signersBox] = [field<HTMLTextAreaElement>('report'), field<HTMLTextAreaElement>('signers')];
const feedSelect = field<HTMLSelectElement>('feed');

const clientOf = () =>
  createClient({
    baseUrl: field('url').value.trim(),
    userId: field('user').value.trim() || undefined,
    secret: field('secret').value.trim() || undefined,
  });

/** A report as the API returns it, with or without `{"report":…}` around it, or only its `fullReport`. */
const readReport = (text: string) => {
  if (!text.startsWith('{')) return text;
  const json = JSON.parse(text);
  return json.report ?? json;
};

const show = (
  state: 'good' | 'bad' | 'idle',
  title: string,
  text: string,
  rows: readonly (readonly string[])[] = [],
): void => {
  field('verdict').className = state;
  field('title').textContent = title;
  field('text').textContent = text;
  field('rows').replaceChildren(
    ...rows.flatMap(([name = '', value = '']) => {
      const [term, definition] = [document.createElement('dt'), document.createElement('dd')];
      term.textContent = name;
      definition.textContent = value;
      return [term, definition];
    }),
  );
};

const showGood = (verdict: Verdict & { readonly ok: true }, signers: SignerSetsJson): void => {
  const set = signers[verdict.configDigest];
  const { decoded } = verdict;
  const dateOf = (ms: number): string => new Date(ms).toISOString();
  const side = (value: bigint | undefined): string => (value === undefined ? '–' : formatDecimal(value));
  const contents =
    decoded === undefined
      ? [['price', 'unknown: this release does not support the report schema']]
      : [
          ['price', decoded.priceText],
          ['bid, ask', `${side(decoded.bid)}, ${side(decoded.ask)}`],
          ['valid', `${dateOf(decoded.validFromMs)} to ${dateOf(decoded.observationsMs)}`],
          ['stream', decoded.feedId],
        ];
  const signed = verdict.signers.map((address, i) => [`signer ${i + 1}`, address]);
  const quorum = `${verdict.signers.length} of ${set?.addresses.length} registered oracles signed exactly these bytes; ${(set?.f ?? 0) + 1} are needed.`;
  show('good', 'Signed by a quorum', quorum, [...contents, ...signed, ['config digest', verdict.configDigest]]);
};

/** Verifies the content of the two boxes whenever either changes. */
const check = (): void => {
  const [report, signers] = [reportBox.value.trim(), signersBox.value.trim()];
  if (report === '' || signers === '')
    return void show('idle', 'Nothing to check yet', 'Enter a report and the signers that you trust.');
  try {
    const sets: SignerSetsJson = JSON.parse(signers);
    const verdict = verify(readReport(report), sets);
    if (verdict.ok) showGood(verdict, sets);
    else show('bad', 'Not verified', `${verdict.message} (${verdict.reason})`);
  } catch (error) {
    show('bad', 'Invalid input', error instanceof Error ? error.message : String(error));
  }
};

/** Runs a server call and shows errors next to the buttons. */
const act = async (deed: () => Promise<void>): Promise<void> => {
  field('trouble').textContent = '';
  await deed().catch((error: unknown) => {
    field('trouble').textContent = error instanceof SealpostError ? `${error.message} ${error.advice}` : String(error);
  });
  check();
};

const fetchReport = async (): Promise<void> => {
  const client = clientOf();
  if (feedSelect.value === '') {
    const { feeds } = await client.discovery({ status: 'live' });
    feedSelect.replaceChildren(...feeds.map(({ feedId, name }) => new Option(name, feedId)));
    feedSelect.disabled = false;
  }
  reportBox.value = JSON.stringify((await client.latest(feedSelect.value)).report, null, 2);
};

const fetchSigners = async (): Promise<void> => {
  signersBox.value = JSON.stringify((await clientOf().signers()).signers, null, 2);
};

/** Changes a digit in the middle of what was signed: no signature survives it. */
const alter = async (): Promise<void> => {
  const other = (_: string, before: string, digit: string): string => before + (digit === '7' ? '8' : '7');
  reportBox.value = reportBox.value.replace(/(0x[0-9a-f]{800})([0-9a-f])/, other);
};

field('fetch-report').addEventListener('click', () => act(fetchReport));
field('url').addEventListener('change', () => feedSelect.replaceChildren(new Option('the first one', '')));
feedSelect.addEventListener('change', () => act(fetchReport));
field('fetch-signers').addEventListener('click', () => act(fetchSigners));
field('alter').addEventListener('click', () => act(alter));
for (const box of [reportBox, signersBox]) box.addEventListener('input', check);
check();
