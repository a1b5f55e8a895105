// The page at /docs: the OpenAPI document as self-contained HTML. No script, no other host, and one inline style, allowed by its hash. All that it
// says about routes, bodies and errors comes from the document.
import { createHash } from 'node:crypto';
import { authHeaders } from '@sealpost/protocol';
import type { OpenApiDocument, OpenApiOperation, OpenApiParameter, OpenApiResponse } from '@sealpost/protocol/openapi';

export type ApiPageOptions = {
  /** Where the examples send their requests, without a slash at the end. */
  readonly serverUrl: string;
};

/** Renders the page. Every value is escaped, the server's address too. */
export const renderApiPage = (document: OpenApiDocument, { serverUrl }: ApiPageOptions): string => {
  const operations = listOperations(document);
  const main = [
    renderHead(document, serverUrl),
    renderContents(document, operations),
    renderSigning(serverUrl),
    ...document.tags.map(({ name, description }) => renderTag(name, description, operations, serverUrl)),
    renderBodies(document),
    renderErrors(document),
  ];
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${escapeHtml(document.info.title)} API</title>
<style>${style}</style>
</head>
<body>
<main>
${main.join('\n')}
</main>
</body>
</html>
`;
};

type Operation = {
  readonly path: string;
  readonly method: string;
  readonly operation: OpenApiOperation;
  /** HEAD of the same path, shown with GET. */
  readonly head: OpenApiOperation | undefined;
};

const listOperations = ({ paths }: OpenApiDocument): readonly Operation[] =>
  Object.entries(paths).flatMap(([path, { get, head }]) => {
    if (get !== undefined) return [{ path, method: 'GET', operation: get, head }];
    return head === undefined ? [] : [{ path, method: 'HEAD', operation: head, head: undefined }];
  });

const escapeHtml = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');

/** Text as HTML, with `code` in backticks. */
const prose = (text: string): string => escapeHtml(text).replace(/`([^`]+)`/g, '<code>$1</code>');

const codeBlock = (code: string, label: string): string =>
  `<figure><figcaption>${escapeHtml(label)}</figcaption><pre tabindex="0"><code>${escapeHtml(code)}</code></pre></figure>`;

const renderHead = ({ info }: OpenApiDocument, serverUrl: string): string => {
  const [lead = '', ...rest] = info.description.split('\n\n');
  return `<header>
<h1>${escapeHtml(info.title)} API <small>${escapeHtml(info.version)}</small></h1>
<p class="lead">${prose(lead)}</p>
<p><code class="server">${escapeHtml(serverUrl)}</code> · <a href="/openapi.json">openapi.json</a></p>
</header>
${rest.map((paragraph) => `<p>${prose(paragraph)}</p>`).join('\n')}`;
};

const badge = (method: string): string => `<span class="method ${method.toLowerCase()}">${method}</span>`;

const breakable = (path: string): string => escapeHtml(path).replaceAll('/', '/<wbr>');

const renderContents = ({ tags }: OpenApiDocument, operations: readonly Operation[]): string => {
  const groups = tags.map(({ name }) => {
    const links = operations
      .filter(({ operation }) => operation.tags.includes(name))
      .map(({ path, method, operation: { operationId } }) => {
        const text = method === 'GET' ? breakable(path) : `${method} ${breakable(path)}`;
        return `<li><a href="#${operationId}"><code>${text}</code></a></li>`;
      });
    return `<div><h2>${name}</h2><ul>${links.join('')}</ul></div>`;
  });
  const more = [
    ['signing', 'Sign a request'],
    ['bodies', 'Bodies'],
    ['errors', 'Errors'],
  ].map(([id, text]) => `<li><a href="#${id}">${text}</a></li>`);
  return `<nav aria-label="Contents">${groups.join('')}<div><h2>More</h2><ul>${more.join('')}</ul></div></nav>`;
};

const signingExamples = (serverUrl: string): readonly (readonly [string, string])[] => {
  const { userId, timestamp, signature } = authHeaders;
  return [
    [
      'Shell',
      `target=/api/v1/feeds
ts=$(date +%s)000
body=$(printf '' | openssl dgst -sha256 -r | cut -c1-64)
sig=$(printf %s "GET $target $body $user $ts" | secret=$secret perl -MDigest::SHA=hmac_sha256_hex -0ne 'print hmac_sha256_hex($_, $ENV{secret})')
printf '%s\\n' "${userId}: $user" "${timestamp}: $ts" "${signature}: $sig" |
  curl -H @- "${serverUrl}$target"`,
    ],
    [
      'TypeScript',
      `import { createHash, createHmac } from 'node:crypto';
const target = '/api/v1/feeds', ts = String(Date.now());
const body = createHash('sha256').digest('hex');
const sig = createHmac('sha256', secret).update(\`GET \${target} \${body} \${user} \${ts}\`).digest('hex');
const headers = { '${userId}': user, '${timestamp}': ts, '${signature}': sig };
const answer = await fetch('${serverUrl}' + target, { headers });`,
    ],
    [
      'Python',
      `import hashlib, hmac, time, urllib.request as http
target, ts = "/api/v1/feeds", str(time.time_ns() // 1_000_000)
body = hashlib.sha256(b"").hexdigest()
sig = hmac.new(secret.encode(), f"GET {target} {body} {user} {ts}".encode(), "sha256").hexdigest()
headers = {"${userId}": user, "${timestamp}": ts, "${signature}": sig}
answer = http.urlopen(http.Request("${serverUrl}" + target, headers=headers))`,
    ],
  ];
};

const signingSetUp = (serverUrl: string): string => `export SEALPOST_URL=${serverUrl}
export SEALPOST_USER_ID=…
export SEALPOST_SECRET=…`;

const renderSigning = (serverUrl: string): string => `<section id="signing">
<h2>Sign a request</h2>
<p>The command <code>sealpost sign METHOD TARGET</code> prints a signed request that curl sends. The examples below need:</p>
${codeBlock(signingSetUp(serverUrl), 'Setup')}
<p>Without the command, use one of these, given <code>user</code> and <code>secret</code>. The hash is that of the empty body. None passes the secret as a program argument, which every user of the machine could read.</p>
${signingExamples(serverUrl)
  .map(([label, code]) => codeBlock(code, label))
  .join('\n')}
</section>`;

const renderTag = (tag: string, about: string, operations: readonly Operation[], serverUrl: string): string => {
  const own = operations.filter(({ operation }) => operation.tags.includes(tag));
  return `<section>
<h2>${escapeHtml(tag)}</h2>
<p>${prose(about)}</p>
${own.map((operation) => renderOperation(operation, serverUrl)).join('\n')}
</section>`;
};

const renderOperation = ({ path, method, operation, head }: Operation, serverUrl: string): string => {
  const { operationId, summary, description, security, parameters, responses } = operation;
  const isOptional = security.some((keys) => Object.keys(keys).length === 0);
  const access =
    security.length === 0 ? 'No authentication' : isOptional ? 'Authentication optional' : 'Signed request';
  const live = operation['x-transport'] === 'websocket' ? '<span class="tag">WebSocket</span>' : '';
  const also = head === undefined ? '' : `<span class="tag" id="${head.operationId}">HEAD supported</span>`;
  return `<article id="${operationId}">
<h3>${badge(method)} <a href="#${operationId}"><code>${breakable(path)}</code></a></h3>
<p>${prose(summary)}${description === undefined ? '' : ` ${prose(description)}`}</p>
<p class="tags"><span class="tag">${access}</span>${live}${also}</p>
${renderParameters(parameters)}
${codeBlock(toCurl({ path, method, operation, head }, serverUrl), 'Example')}
${renderResponses(Object.entries(responses))}
</article>`;
};

/** Answers of the route's own, then the errors that routes share, folded away. */
const renderResponses = (responses: readonly (readonly [string, OpenApiResponse])[]): string => {
  const isShared = ([status, { $ref, content }]: readonly [string, OpenApiResponse]) =>
    $ref !== undefined || (/^[45]/.test(status) && content === undefined);
  const shared = responses.filter(isShared);
  const own = responses.filter((response) => !isShared(response));
  return `<dl class="answers">${own.map(renderResponse).join('')}</dl>
<details><summary>Errors: ${shared.map(([status]) => status).join(', ')}</summary>
<dl class="answers">${shared.map(renderResponse).join('')}</dl></details>`;
};

const renderParameters = (parameters: readonly OpenApiParameter[]): string => {
  if (parameters.length === 0) return '';
  const rows = parameters.map(({ name, in: place, required, description, schema }) => {
    const note = required ? ' <small><b>required</b></small>' : place === 'header' ? ' <small>header</small>' : '';
    return `<div><dt><code>${escapeHtml(name)}</code>${note}</dt><dd>${prose(description)} <small>${describe(schema)}</small></dd></div>`;
  });
  return `<dl class="fields">${rows.join('')}</dl>`;
};

const renderResponse = ([status, { description, content, $ref }]: readonly [string, OpenApiResponse]): string => {
  const body = content?.['application/json']?.schema ?? content?.['text/html']?.schema;
  // The descriptions of shared answers are lists of codes, each with its row in the error table.
  const text =
    $ref === undefined
      ? prose(description)
      : description.replace(/`(\w+)`/g, '<a href="#error-$1"><code>$1</code></a>');
  const kind = /^[45]/.test(status) ? 'bad' : 'good';
  return `<div><dt class="${kind}">${status}</dt><dd>${text}${body === undefined ? '' : ` ${describe(body)}`}</dd></div>`;
};

/** Any schema of the document, whose keys are all optional from here. */
type AnySchema = {
  readonly type?: string | readonly string[];
  readonly $ref?: string;
  readonly items?: AnySchema;
  readonly oneOf?: readonly AnySchema[];
  readonly enum?: readonly (string | number)[];
  readonly format?: string;
  readonly pattern?: string;
  readonly default?: number | boolean;
  readonly description?: string;
  readonly properties?: Readonly<Record<string, AnySchema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: boolean | AnySchema;
} & { readonly [K in 'minimum' | 'maximum' | 'maxItems']?: number };

const describe = (schema: AnySchema): string => {
  const { type, $ref, items, oneOf, format, pattern, minimum, maximum, maxItems } = schema;
  if ($ref !== undefined) {
    const name = escapeHtml($ref.split('/').at(-1) ?? '');
    return `<a href="#body-${name}">${name}</a>`;
  }
  if (oneOf !== undefined) return oneOf.map(describe).join(' or ');
  if (items !== undefined)
    return `list of ${describe(items)}${maxItems === undefined ? '' : `, at most ${maxItems}`}${told(schema)}`;
  if (schema.enum !== undefined)
    return schema.enum.map((value) => `<code>${escapeHtml(String(value))}</code>`).join(' or ');
  const bounds = maximum !== undefined ? ` ${minimum ?? ''}–${maximum}` : minimum !== undefined ? ` ≥ ${minimum}` : '';
  const form =
    format === 'int64' ? '' : (format ?? (pattern === undefined ? '' : `<code>${escapeHtml(pattern)}</code>`));
  return [escapeHtml([type].flat().join(' or ')) + bounds, form].filter((part) => part !== '').join(' ') + told(schema);
};

const told = (schema: AnySchema): string => (schema.default === undefined ? '' : `, default ${schema.default}`);

const feedIds = [
  '0x000359843a543ee2fe414dc14c7e7920ef10f4372990b79d6361cdc0dd1ba782',
  '0x00037da06d56d083fe599397a4769a042d63aa73dc4ef57709d31e9971a5b439',
] as const;

/** Values of the arguments that examples name; timestamps come from the clock, so that they are within retention. */
const exampleValues: Readonly<Record<string, string>> = {
  feedID: '$feed',
  feedIDs: '$feeds',
  timestamp: '$(($(date +%s) - 10))',
  startTimestamp: '$(($(date +%s) - 60))',
  from: '$(($(date +%s) - 3600))',
  to: '$(date +%s)',
  resolution: '60',
  base_asset: 'ETH,BTC',
};

const handshake = `--http1.1 -N -o - -H 'Connection: Upgrade' -H 'Upgrade: websocket' \\
  -H 'Sec-WebSocket-Version: 13' -H "Sec-WebSocket-Key: $(openssl rand -base64 16)" `;

const toCurl = ({ path, method, operation }: Operation, serverUrl: string): string => {
  const known = operation.parameters.filter(({ name }) => Object.hasOwn(exampleValues, name));
  // A path with two forms takes one stream or several, never both.
  const takesOne = known.some(({ name }) => name === 'feedID');
  const named = takesOne ? known.filter(({ name }) => name !== 'feedIDs') : known;
  const query = named.map(({ name }) => `${name}=${exampleValues[name]}`).join('&');
  const target = query === '' ? path : `"${path}?${query}"`;
  const goesOn = operation.responses[200]?.content?.['text/event-stream'] !== undefined;
  const flags = operation['x-transport'] === 'websocket' ? handshake : goesOn ? '-N ' : '';
  const isSigned = operation.security.length > 0;
  return [
    ...(query.includes('$feeds') ? [`feeds=${feedIds.join(',')}`] : []),
    ...(/\$feed\b/.test(query) ? [`feed=${feedIds[0]}`] : []),
    isSigned ? `sealpost sign ${method} ${target} | curl ${flags}--config -` : `curl ${serverUrl}${target}`,
  ].join('\n');
};

const renderBodies = ({ components }: OpenApiDocument): string => {
  const entries = Object.entries(components.schemas as Readonly<Record<string, AnySchema>>); // read key by key, none assumed
  const articles = entries.map(([name, schema]) => {
    const { properties = {}, required = [], additionalProperties } = schema;
    const rows = Object.entries(properties).map(([key, field]) => {
      const need = required.includes(key) ? '' : ' <small>not always</small>';
      return `<div><dt><code>${escapeHtml(key)}</code>${need}</dt><dd>${prose(field.description ?? '')} <small>${describe(field)}</small></dd></div>`;
    });
    const others =
      typeof additionalProperties === 'object'
        ? `<div><dt>any key</dt><dd>${describe(additionalProperties)}</dd></div>`
        : additionalProperties === true
          ? '<div><dt>more</dt><dd>Details of the error.</dd></div>'
          : '';
    return `<article id="body-${escapeHtml(name)}"><h3><a href="#body-${escapeHtml(name)}">${escapeHtml(name)}</a></h3>
<dl class="fields">${rows.join('')}${others}</dl></article>`;
  });
  return `<section id="bodies"><h2>Bodies</h2>\n${articles.join('\n')}\n</section>`;
};

const renderErrors = (document: OpenApiDocument): string => {
  const rows = document['x-errors'].map(
    ({ code, status, retry, message }) =>
      `<tr id="error-${code}"><td><code>${code}</code></td><td>${status}</td><td>${retry ? 'yes' : 'no'}</td><td>${prose(message)}</td></tr>`,
  );
  return `<section id="errors">
<h2>Errors</h2>
<p>Branch on <code>code</code>, show <code>message</code>, quote <code>requestId</code>. Retry what is marked so, with exponential
back-off, and honour <code>Retry-After</code>.</p>
<table>
<thead><tr><th>code</th><th>status</th><th>retry</th><th>meaning</th></tr></thead>
<tbody>${rows.join('\n')}</tbody>
</table>
</section>`;
};

const style = `
:root{color-scheme:light dark;--page:#fff;--ink:#1c2128;--soft:#5b6570;--line:#d9dee4;--panel:#f5f7f9;--link:#0b62c4;--get:#0a7a4b;--bad:#a4341f}
@media (prefers-color-scheme:dark){:root{--page:#12161b;--ink:#e3e8ee;--soft:#98a3af;--line:#2c343d;--panel:#1a2027;--link:#74b3ff;--get:#4cc38a;--bad:#f08a72}}
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%;scroll-padding-top:1rem}
body{margin:0;background:var(--page);color:var(--ink);font:1rem/1.55 system-ui,sans-serif}
main{max-width:58rem;margin:0 auto;padding:2rem 1.25rem 5rem}
h1{font-size:1.9rem;margin:0 0 .25rem}
h2{font-size:1.35rem;margin:3rem 0 .5rem;padding-bottom:.3rem;border-bottom:1px solid var(--line)}
h3{font-size:1.05rem;margin:0 0 .5rem;overflow-wrap:anywhere}
h3 a{color:inherit;text-decoration:none}
small{color:var(--soft);font-weight:400;font-size:.85em}
a{color:var(--link)}
code{font:.9em ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;overflow-wrap:anywhere}
p{margin:.5rem 0}
.lead{font-size:1.15rem;color:var(--soft)}
nav{columns:15rem;column-gap:2rem;margin:1.5rem 0;padding:1rem 1.25rem;background:var(--panel);border-radius:.5rem}
nav div{break-inside:avoid;padding-bottom:.5rem}
nav h2{font-size:.8rem;margin:0 0 .25rem;border:0;padding:0;color:var(--soft);text-transform:uppercase;letter-spacing:.06em}
nav ul{list-style:none;margin:0;padding:0}
nav a{display:block;padding:.2rem 0;text-decoration:none}
article{margin:1.25rem 0;padding:1.1rem 1.25rem;border:1px solid var(--line);border-radius:.5rem}
article:target,tr:target{outline:2px solid var(--link);outline-offset:2px}
.method{display:inline-block;min-width:3.2rem;padding:.05rem .4rem;border:1px solid;border-radius:.3rem;font-size:.75rem;text-align:center;vertical-align:.1em;color:var(--get)}
.method.head{color:var(--link)}
.tag{display:inline-block;margin-right:.4rem;padding:0 .5rem;border-radius:1rem;background:var(--panel);border:1px solid var(--line);font-size:.8rem;color:var(--soft)}
dl{margin:.75rem 0 0}
dl>div{display:grid;grid-template-columns:15.5rem 1fr;gap:0 1rem;padding:.35rem 0;border-top:1px solid var(--line)}
dt{overflow-wrap:anywhere}
dd{margin:0;overflow-wrap:anywhere}
.answers>div{grid-template-columns:3.5rem 1fr}
.answers dt{font-weight:600;color:var(--get)}
.answers dt.bad{color:var(--bad)}
.answers dd{font-size:.92rem}
details{margin-top:.6rem;font-size:.92rem}
summary{cursor:pointer;color:var(--soft)}
figure{margin:.9rem 0 0}
figure+p{margin-top:1rem}
figcaption{font-size:.8rem;color:var(--soft)}
pre{margin:.2rem 0 0;padding:.7rem .9rem;overflow-x:auto;background:var(--panel);border:1px solid var(--line);border-radius:.4rem;font-size:.86rem;line-height:1.5}
pre code{overflow-wrap:normal;font-size:1em}
table{border-collapse:collapse;width:100%;margin-top:.75rem;font-size:.92rem}
th,td{text-align:left;vertical-align:top;padding:.35rem .8rem .35rem 0;border-bottom:1px solid var(--line)}
th{color:var(--soft);font-weight:600}
@media (max-width:40rem){
main{padding:1.25rem 1rem 4rem}
nav{columns:1}
pre{font-size:.8rem}
nav a{padding:.35rem 0}
article{padding:.9rem}
dl.fields>div{grid-template-columns:1fr}
thead{display:none}
tr{display:grid;grid-template-columns:1fr auto auto;gap:0 .8rem;padding:.5rem 0;border-bottom:1px solid var(--line)}
td{border:0;padding:0}
td:nth-child(3)::before{content:"retry "}
td:nth-child(4){grid-column:1/-1;color:var(--soft)}
}
`;

/** The Content-Security-Policy to send with the page: nothing but its own style. */
export const apiPagePolicy = [
  "default-src 'none'",
  `style-src 'sha256-${createHash('sha256').update(style).digest('base64')}'`,
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');
