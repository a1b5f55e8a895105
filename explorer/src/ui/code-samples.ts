// Programs that send one request of the API, for people to copy: curl, TypeScript, Go, Rust and Python. User ID and secret come from the
// environment, and a request is signed when the program runs, so a sample holds no secret and never expires. Go and Python need only their
// standard libraries.
import {
  authHeaders,
  emptyBodySha256,
  isLive,
  isSchemaVersion,
  type Route,
  type RouteName,
  reportSchemas,
  routes,
  schemaVersionOf,
} from '@sealpost/protocol';
import { clientCalls, quote } from './client-calls.ts';

export const sampleLanguages = ['curl', 'typescript', 'go', 'rust', 'python'] as const;

export type SampleLanguage = (typeof sampleLanguages)[number];

export type SampleRequest = {
  /** The server, such as `https://api.example.org`. */
  readonly origin: string;
  readonly route: RouteName;
  /** Arguments by their names in the query, in the order in which they are sent. */
  readonly query?: Readonly<Record<string, string>>;
  /** Whether the request is signed; by default if the route needs it. */
  readonly isSigned?: boolean;
};

export type CodeSample = {
  readonly language: SampleLanguage;
  readonly title: string;
  readonly text: string;
  /** What it needs to run. */
  readonly needs: string;
};

/** What every language writes in its own words. */
type Call = {
  readonly origin: string;
  readonly route: RouteName;
  readonly method: string;
  /** Path and query, as signed and sent. */
  readonly target: string;
  readonly query: Readonly<Record<string, string>>;
  readonly isSigned: boolean;
  readonly isEvents: boolean;
  /** Where the bytes of the price are, if the answer is one report. */
  readonly priceAt: { readonly start: number; readonly end: number; readonly bodyBytes: number } | undefined;
};

type Language = {
  readonly title: string;
  /** Apart from the keys. */
  readonly needs: (call: Call) => string | undefined;
  readonly write: (call: Call) => readonly string[];
};

/** Keeps commas, which separate feed IDs; a quote would end a text in a shell. */
const encode = (text: string): string =>
  encodeURIComponent(text).replaceAll('%2C', ',').replaceAll('%3A', ':').replaceAll("'", '%27');

/** Path and query of a request, as it is signed and sent. */
const targetOf = ({ route, query = {} }: Pick<SampleRequest, 'route' | 'query'>): string => {
  const pairs = Object.entries(query).map(([name, value]) => `${encode(name)}=${encode(value)}`);
  return `${routes[route].path}${pairs.length === 0 ? '' : `?${pairs.join('&')}`}`;
};

const wordBytes = 32;
/** Words of a full report before its body; the last of them is the body's length. A body of another length has another layout (D246). */
const headWords = 8;
const lengthAt = { start: (headWords - 1) * wordBytes, end: headWords * wordBytes } as const;
const unknownSchema = 'unknown_schema: this body has another layout';

const priceAtOf = (route: RouteName, feedId: string | undefined): Call['priceAt'] => {
  if ((route !== 'reportLatest' && route !== 'reportAt') || feedId === undefined) return undefined;
  if (!/^0x[0-9a-f]{64}$/i.test(feedId)) return undefined;
  const version = schemaVersionOf(feedId);
  if (!isSchemaVersion(version)) return undefined;
  const { fields, headline } = reportSchemas[version];
  const start = (headWords + fields.findIndex(({ name }) => name === headline.price)) * wordBytes;
  return { start, end: start + wordBytes, bodyBytes: fields.length * wordBytes };
};

/** The samples of a request, in the order of `sampleLanguages`. A WebSocket has only TypeScript: other languages need a library for it. */
export function codeSamples(request: SampleRequest): readonly CodeSample[] {
  const { origin, route: name, query = {} } = request;
  const route: Route = routes[name];
  const call: Call = {
    origin,
    route: name,
    method: route.method,
    target: targetOf(request),
    query,
    isSigned: request.isSigned ?? route.auth === 'required',
    isEvents: isLive(route),
    priceAt: priceAtOf(name, query.feedID),
  };
  const written = route.transport === 'websocket' ? (['typescript'] as const) : sampleLanguages;
  return written.map((language) => {
    const { title, needs, write } = languages[language];
    return { language, title, text: `${write(call).join('\n')}\n`, needs: needsText(call, needs(call)) };
  });
}

const needsText = ({ isSigned }: Call, more: string | undefined): string => {
  const keys = isSigned ? ['SEALPOST_USER_ID and SEALPOST_SECRET in the environment'] : [];
  const all = [...keys, ...(more === undefined ? [] : [more])];
  return all.length === 0 ? 'Needs no account.' : `Needs ${all.join('; ')}.`;
};

const writeCurl = ({ origin, method, target, isSigned, isEvents }: Call): readonly string[] => {
  const flags = `-s${isEvents ? 'N' : ''}`;
  if (isSigned) return [`sealpost sign ${method} '${target}' --url ${origin} | curl ${flags} --config -`];
  return [`curl ${flags}${method === 'HEAD' ? 'I' : ''} '${origin}${target}'`];
};

const writeTypeScript = (call: Call): readonly string[] => {
  const lines = clientCalls[call.route]?.(call.query);
  if (lines === undefined) return isWebSocket(call) ? writeWebSocket(call) : writeFetch(call);
  const doesDecode = lines.some((line) => line.includes('decode('));
  const keys = ['const { SEALPOST_USER_ID: userId, SEALPOST_SECRET: secret } = process.env;'];
  return [
    `import { createClient${doesDecode ? ', decode' : ''} } from '@sealpost/client';`,
    '',
    ...(call.isSigned ? keys : []),
    `const client = createClient({ baseUrl: ${quote(call.origin)}${call.isSigned ? ', userId, secret' : ''} });`,
    ...lines,
  ];
};

const isWebSocket = ({ route }: Call): boolean => routes[route].transport === 'websocket';

const signLines = (method: string, target: string): readonly string[] => [
  `const { SEALPOST_USER_ID: userId = '', SEALPOST_SECRET: secret = '' } = process.env;`,
  `const target = ${quote(target)};`,
  `const headers = signRequest({ method: ${quote(method)}, target, userId, timestampMs: Date.now() }, secret);`,
];

const writeWebSocket = ({ origin, method, target }: Call): readonly string[] => [
  `import { on } from 'node:events';`,
  `import { signRequest } from '@sealpost/client';`,
  `import { WebSocket } from 'ws';`,
  '',
  ...signLines(method, target),
  `const socket = new WebSocket(${quote(origin.replace(/^http/, 'ws'))} + target, { headers });`,
  `for await (const [message] of on(socket, 'message', { close: ['close'] })) console.log(String(message));`,
];

const writeFetch = ({ origin, method, target, isSigned }: Call): readonly string[] => {
  const settings = [...(method === 'GET' ? [] : [`method: ${quote(method)}`]), ...(isSigned ? ['headers'] : [])];
  const signing = [`import { signRequest } from '@sealpost/client';`, '', ...signLines(method, target)];
  return [
    ...(isSigned ? signing : []),
    `const answer = await fetch(${isSigned ? `${quote(origin)} + target` : quote(origin + target)}${settings.length === 0 ? '' : `, { ${settings.join(', ')} }`});`,
    method === 'HEAD' ? 'console.log(answer.status, ...answer.headers);' : 'console.log(await answer.text());',
  ];
};

const writePython = ({ origin, method, target, isSigned, isEvents, priceAt }: Call): readonly string[] => {
  const doesLoad = priceAt !== undefined;
  const request = `Request(${JSON.stringify(origin)} + target${isSigned ? ', headers=headers' : ''}${method === 'GET' ? '' : `, method="${method}"`})`;
  const signing = [
    'user_id, secret = os.environ["SEALPOST_USER_ID"], os.environ["SEALPOST_SECRET"]',
    'timestamp = str(int(time.time() * 1000))',
    `text = " ".join(["${method}", target, hashlib.sha256(b"").hexdigest(), user_id, timestamp])`,
    'headers = {',
    `    "${authHeaders.userId}": user_id,`,
    `    "${authHeaders.timestamp}": timestamp,`,
    `    "${authHeaders.signature}": hmac.new(secret.encode(), text.encode(), "sha256").hexdigest(),`,
    '}',
  ];
  return [
    ...(isSigned ? [`import hashlib, hmac, ${doesLoad ? 'json, ' : ''}os, time`] : doesLoad ? ['import json'] : []),
    'from urllib.request import Request, urlopen',
    '',
    `target = ${JSON.stringify(target)}`,
    ...(isSigned ? signing : []),
    `with urlopen(${request}, timeout=${isEvents ? 60 : 10}) as answer:`,
    ...pythonAnswer(method, isEvents, priceAt),
  ];
};

const pythonAnswer = (method: string, isEvents: boolean, priceAt: Call['priceAt']): readonly string[] => {
  if (isEvents)
    return [
      '    for line in answer:',
      '        if line.startswith(b"data: "):',
      '            print(line[6:].decode(), end="", flush=True)',
    ];
  if (priceAt !== undefined)
    return [
      '    report = json.load(answer)["report"]',
      'full = bytes.fromhex(report["fullReport"][2:])',
      `if int.from_bytes(full[${lengthAt.start}:${lengthAt.end}], "big") != ${priceAt.bodyBytes}:`,
      `    raise ValueError("${unknownSchema}")`,
      `price = int.from_bytes(full[${priceAt.start}:${priceAt.end}], "big", signed=True)  # 18 decimals`,
      `print(f"{'-' if price < 0 else ''}{abs(price) // 10**18}.{abs(price) % 10**18:018}")`,
    ];
  return [method === 'HEAD' ? '    print(answer.status, answer.headers)' : '    print(answer.read().decode())'];
};

const writeGo = ({ origin, method, target, isSigned, isEvents, priceAt }: Call): readonly string[] => {
  const { imports, lines } = goAnswer(method, isEvents, priceAt);
  const signing = [
    '\tuser, secret := os.Getenv("SEALPOST_USER_ID"), os.Getenv("SEALPOST_SECRET")',
    '\ttimestamp := fmt.Sprint(time.Now().UnixMilli())',
    '\tmac := hmac.New(sha256.New, []byte(secret))',
    `\tfmt.Fprintf(mac, "${method} %s %x %s %s", target, sha256.Sum256(nil), user, timestamp)`,
    `\trequest.Header.Set("${authHeaders.userId}", user)`,
    `\trequest.Header.Set("${authHeaders.timestamp}", timestamp)`,
    `\trequest.Header.Set("${authHeaders.signature}", fmt.Sprintf("%x", mac.Sum(nil)))`,
  ];
  const packages = [...imports, 'fmt', 'net/http', ...(isSigned ? ['crypto/hmac', 'crypto/sha256', 'os', 'time'] : [])];
  return [
    'package main',
    '',
    'import (',
    ...packages.sort().map((name) => `\t"${name}"`),
    ')',
    '',
    'func check(err error) {',
    '\tif err != nil {',
    '\t\tpanic(err)',
    '\t}',
    '}',
    '',
    'func main() {',
    `\ttarget := ${JSON.stringify(target)}`,
    `\trequest, err := http.NewRequest("${method}", ${JSON.stringify(origin)}+target, nil)`,
    '\tcheck(err)',
    ...(isSigned ? signing : []),
    '\tresponse, err := http.DefaultClient.Do(request)',
    '\tcheck(err)',
    '\tdefer response.Body.Close()',
    ...lines.map((line) => `\t${line}`),
    '}',
  ];
};

type GoAnswer = { readonly imports: readonly string[]; readonly lines: readonly string[] };

const goAnswer = (method: string, isEvents: boolean, priceAt: Call['priceAt']): GoAnswer => {
  const read = ['body, err := io.ReadAll(response.Body)', 'check(err)'];
  if (isEvents)
    return {
      imports: ['bufio', 'io', 'log', 'strings'],
      lines: [
        'if response.StatusCode != http.StatusOK {',
        ...read.map((line) => `\t${line}`),
        '\tlog.Fatal(response.Status, " ", string(body))',
        '}',
        'events := bufio.NewScanner(response.Body)',
        'for events.Scan() {',
        '\tif line := events.Text(); strings.HasPrefix(line, "data: ") {',
        '\t\tfmt.Println(line[6:])',
        '\t}',
        '}',
        'check(events.Err())',
      ],
    };
  if (method === 'HEAD') return { imports: [], lines: ['fmt.Println(response.Status, response.Header)'] };
  if (priceAt === undefined) return { imports: ['io'], lines: [...read, 'fmt.Println(response.Status, string(body))'] };
  return {
    imports: ['encoding/hex', 'encoding/json', 'io', 'log', 'math/big'],
    lines: [
      ...read,
      'if response.StatusCode != http.StatusOK {',
      '\tlog.Fatal(response.Status, " ", string(body))',
      '}',
      'var answer struct{ Report struct{ FullReport string } }',
      'check(json.Unmarshal(body, &answer))',
      'report, err := hex.DecodeString(answer.Report.FullReport[2:])',
      'check(err)',
      `if new(big.Int).SetBytes(report[${lengthAt.start}:${lengthAt.end}]).Cmp(big.NewInt(${priceAt.bodyBytes})) != 0 {`,
      `\tlog.Fatal("${unknownSchema}")`,
      '}',
      `price := new(big.Int).SetBytes(report[${priceAt.start}:${priceAt.end}]) // 18 decimals`,
      'if price.Bit(255) == 1 {',
      '\tprice.Sub(price, new(big.Int).Lsh(big.NewInt(1), 256))',
      '}',
      'fmt.Println(new(big.Rat).SetFrac(price, big.NewInt(1e18)).FloatString(18))',
    ],
  };
};

const writeRust = ({ origin, method, target, isSigned, isEvents, priceAt }: Call): readonly string[] => {
  const crates = [
    'ureq@2',
    ...(isSigned ? ['hmac@0.12', 'sha2@0.10'] : []),
    ...(isSigned || priceAt !== undefined ? ['hex@0.4'] : []),
    ...(priceAt === undefined ? [] : ['num-bigint@0.4', 'serde_json@1']),
  ];
  const std = [
    'error::Error',
    ...(isSigned ? ['env', 'time::SystemTime'] : []),
    ...(isEvents ? ['io::{BufRead, BufReader}'] : []),
  ];
  const signing = [
    `    let empty = "${emptyBodySha256}"; // SHA-256 of no body`,
    '    let (user, secret) = (env::var("SEALPOST_USER_ID")?, env::var("SEALPOST_SECRET")?);',
    '    let timestamp = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?.as_millis().to_string();',
    '    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).expect("a key of any length");',
    `    mac.update(format!("${method} {target} {empty} {user} {timestamp}").as_bytes());`,
    '    let signature = hex::encode(mac.finalize().into_bytes());',
  ];
  const headers = [
    `        .set("${authHeaders.userId}", &user)`,
    `        .set("${authHeaders.timestamp}", &timestamp)`,
    `        .set("${authHeaders.signature}", &signature)`,
  ];
  return [
    `// cargo add ${crates.join(' ')}`,
    ...(isSigned ? ['use hmac::{Hmac, Mac};'] : []),
    ...(priceAt === undefined ? [] : ['use num_bigint::BigInt;']),
    ...(isSigned ? ['use sha2::Sha256;'] : []),
    `use std::{${std.sort().join(', ')}};`,
    '',
    'fn main() -> Result<(), Box<dyn Error>> {',
    `    let target = ${JSON.stringify(target)};`,
    ...(isSigned ? signing : []),
    `    let response = ureq::${method.toLowerCase()}(&format!("${origin}{target}"))`,
    ...(isSigned ? headers : []),
    '        .call()?;',
    ...rustAnswer(method, isEvents, priceAt).map((line) => `    ${line}`),
    '    Ok(())',
    '}',
  ];
};

const rustAnswer = (method: string, isEvents: boolean, priceAt: Call['priceAt']): readonly string[] => {
  if (isEvents)
    return [
      'for line in BufReader::new(response.into_reader()).lines() {',
      '    if let Some(data) = line?.strip_prefix("data: ") {',
      '        println!("{data}");',
      '    }',
      '}',
    ];
  if (method === 'HEAD')
    return [
      'for name in response.headers_names() {',
      '    println!("{name}: {}", response.header(&name).unwrap_or_default());',
      '}',
    ];
  if (priceAt === undefined) return ['println!("{}", response.into_string()?);'];
  return [
    'let answer: serde_json::Value = serde_json::from_reader(response.into_reader())?;',
    'let report = hex::decode(&answer["report"]["fullReport"].as_str().ok_or("no report")?[2..])?;',
    `if BigInt::from_signed_bytes_be(&report[${lengthAt.start}..${lengthAt.end}]) != BigInt::from(${priceAt.bodyBytes}) {`,
    `    return Err("${unknownSchema}".into());`,
    '}',
    `let price = BigInt::from_signed_bytes_be(&report[${priceAt.start}..${priceAt.end}]); // 18 decimals`,
    'let digits = format!("{:019}", price.magnitude());',
    'let (whole, fraction) = digits.split_at(digits.len() - 18);',
    'let sign = if price < BigInt::from(0) { "-" } else { "" };',
    'println!("{sign}{whole}.{fraction}");',
  ];
};

/** Where our packages come from: they are not on the npm registry. */
export const fromClone = 'from a clone of Sealpost (npm ci && npm run pack)';

const languages: Readonly<Record<SampleLanguage, Language>> = {
  curl: {
    title: 'curl',
    needs: ({ isSigned }) => (isSigned ? `the command sealpost, which signs the request, ${fromClone}` : undefined),
    write: writeCurl,
  },
  typescript: {
    title: 'TypeScript',
    needs: (call) => {
      const hasCall = clientCalls[call.route]?.(call.query) !== undefined;
      if (isWebSocket(call) && !hasCall) return `the packages ws and @sealpost/client, ${fromClone}`;
      return call.isSigned || hasCall ? `the package @sealpost/client, ${fromClone}` : undefined;
    },
    write: writeTypeScript,
  },
  go: { title: 'Go', needs: () => undefined, write: writeGo },
  rust: { title: 'Rust', needs: () => 'the crates of its first line', write: writeRust },
  python: { title: 'Python', needs: () => undefined, write: writePython },
};
