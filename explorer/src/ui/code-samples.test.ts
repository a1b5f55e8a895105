import { type RouteName, routes } from '@sealpost/protocol';
import { expect, test } from 'vitest';
import { codeSamples, type SampleLanguage, type SampleRequest, sampleLanguages } from './code-samples.ts';

const feedId = `0x0003${'1'.repeat(60)}`;
const origin = 'https://api.example.org';
const latest: SampleRequest = { origin, route: 'reportLatest', query: { feedID: feedId } };

const textOf = (request: SampleRequest, language: SampleLanguage): string =>
  codeSamples(request).find((sample) => sample.language === language)?.text ?? '';

test('code samples: curl sends a request that the command signs', () => {
  expect(textOf(latest, 'curl')).toBe(
    `sealpost sign GET '/api/v1/reports/latest?feedID=${feedId}' --url https://api.example.org | curl -s --config -\n`,
  );
  expect(textOf({ origin, route: 'reportStream', query: { feedIDs: feedId } }, 'curl')).toMatch(
    / \| curl -sN --config -\n$/,
  );
  expect(textOf({ origin, route: 'status' }, 'curl')).toBe("curl -s 'https://api.example.org/status.json'\n");
});

test('code samples: TypeScript calls the client, with stream and server filled in', () => {
  expect(textOf(latest, 'typescript')).toBe(`import { createClient, decode } from '@sealpost/client';

const { SEALPOST_USER_ID: userId, SEALPOST_SECRET: secret } = process.env;
const client = createClient({ baseUrl: 'https://api.example.org', userId, secret });
const { report } = await client.latest('${feedId}');
console.log(decode(report).priceText);
`);
  expect(textOf({ origin, route: 'reportStream', query: { feedIDs: `${feedId},${feedId}` } }, 'typescript')).toContain(
    `for await (const report of client.stream(['${feedId}', '${feedId}']))`,
  );
});

test('code samples: a route that the client has no call for is sent by fetch', () => {
  expect(textOf({ origin, route: 'discovery', query: { base_asset: 'ETH,BTC' } }, 'typescript')).toBe(
    `const answer = await fetch('https://api.example.org/api/v1/discovery?base_asset=ETH,BTC');
console.log(await answer.text());
`,
  );
  const signed = textOf({ origin, route: 'discovery', isSigned: true }, 'typescript');
  expect(signed).toContain("signRequest({ method: 'GET', target, userId, timestampMs: Date.now() }, secret)");
  expect(signed).toContain("fetch('https://api.example.org' + target, { headers })");
});

test('code samples: the WebSocket in milliseconds is opened by the client for streams that need it, else by its address', () => {
  const millisecondId = `0x1003${'1'.repeat(60)}`;
  expect(textOf({ origin, route: 'socketMs', query: { feedIDs: millisecondId } }, 'typescript')).toContain(
    `client.stream(['${millisecondId}'], { transport: 'websocket' })`,
  );
  const plain: SampleRequest = { origin, route: 'socketMs', query: { feedIDs: feedId } };
  const text = textOf(plain, 'typescript');
  expect(text).toContain(`const target = '/api/v2/ws?feedIDs=${feedId}';`);
  expect(text).toContain("new WebSocket('wss://api.example.org' + target, { headers })");
  expect(codeSamples(plain)[0]?.needs).toContain('the packages ws and @sealpost/client, from a clone of Sealpost');
});

test('code samples: the price is read where the schema of the stream has it', () => {
  expect(textOf(latest, 'python')).toContain('[448:480]');
  expect(textOf(latest, 'go')).toContain('report[448:480]');
  expect(textOf(latest, 'rust')).toContain('report[448..480]');
  const second = { ...latest, query: { feedID: `0x0008${'1'.repeat(60)}` } };
  expect(textOf(second, 'python')).toContain('[480:512]');
});

test('code samples: every route has all languages, and a WebSocket has TypeScript', () => {
  const names = Object.keys(routes) as RouteName[]; // the keys of that table
  for (const route of names) {
    const samples = codeSamples({ origin, route, query: { feedID: feedId, feedIDs: feedId } });
    expect(samples.map(({ language }) => language)).toEqual(
      routes[route].transport === 'websocket' ? ['typescript'] : sampleLanguages,
    );
    for (const { language, text } of samples)
      expect(text).toContain(language === 'typescript' ? 'await' : routes[route].path);
  }
});

test('code samples: secrets come from the environment, and only where a request is signed', () => {
  for (const { text, needs } of codeSamples(latest)) {
    expect(text).toMatch(/SEALPOST_SECRET|sealpost sign/);
    expect(needs).toContain('SEALPOST_USER_ID and SEALPOST_SECRET in the environment');
  }
  for (const { text } of codeSamples({ origin, route: 'signers' })) expect(text).not.toContain('SEALPOST_');
});

test('code samples: an argument cannot end the text that it is in', () => {
  const hostile = { origin, route: 'discovery', query: { base_asset: `'; rm -rf "$HOME" #\\` } } as const;
  for (const { text } of codeSamples(hostile)) {
    expect(text).not.toContain('rm -rf');
    expect(text).toContain('base_asset=%27%3B%20rm%20-rf%20%22%24HOME%22%20%23%5C');
  }
});

test('code samples: Go needs no release later than 1.17, and a refused connection to live reports says why', () => {
  const live = textOf({ origin, route: 'reportStream', query: { feedIDs: feedId } }, 'go');
  expect(live).not.toContain('CutPrefix'); // of Go 1.20
  expect(live).toContain('log.Fatal(response.Status, " ", string(body))');
  expect(live).toContain('if line := events.Text(); strings.HasPrefix(line, "data: ") {');
});

test('code samples: Rust names crates that one command adds', () => {
  expect(textOf(latest, 'rust')).toMatch(
    /^\/\/ cargo add ureq@2 hmac@0.12 sha2@0.10 hex@0.4 num-bigint@0.4 serde_json@1\n/,
  );
});

test('code samples: the answer to HEAD is its headers', () => {
  const head: SampleRequest = { origin, route: 'origins' };
  expect(textOf(head, 'go')).toContain('fmt.Println(response.Status, response.Header)');
  expect(textOf(head, 'go')).not.toContain('"io"');
  expect(textOf(head, 'rust')).toContain('for name in response.headers_names() {');
});
