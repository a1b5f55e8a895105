// A request of a check as a shell line that sends it again. It signs with `sealpost sign`, so that it contains no secret.

import type { RequestToSend } from '@sealpost/conformance/exchange';
import { strangers } from '@sealpost/conformance/requester';
import { authHeaders } from '@sealpost/protocol';
import { serverAddress } from '../../remote-client.ts';

export type CurlOptions = {
  readonly url: URL;
  readonly wsUrl: URL;
  readonly userId: string;
  /** Flags of `sealpost sign` that name the credentials. */
  readonly signFlags: readonly string[];
};

/** Quoted for a shell. */
const quote = (text: string): string => (/^[\w@%+=:,./~-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);

const quoteSed = (text: string): string => text.replace(/[\\&|]/g, '\\$&');

const upgradeHeaders = {
  Connection: 'Upgrade',
  Upgrade: 'websocket',
  'Sec-WebSocket-Version': '13',
  'Sec-WebSocket-Key': 'c2VhbHBvc3QgY29uZm9ybQ==',
} as const;

/** The line that reproduces a request, with the status and headers of the answer. */
export function toCurl(request: RequestToSend, options: CurlOptions): string {
  const { url, wsUrl } = options;
  const { method, target, signed, headers, isUpgrade } = request;
  const address = `${serverAddress(isUpgrade ? wsUrl : url)}${target}`;
  const extra = Object.entries({ ...(isUpgrade ? upgradeHeaders : {}), ...headers }).filter(
    ([name]) => signed === false || !isSigned(name),
  );
  const flags = [
    ...(isUpgrade ? ['--http1.1', '--no-buffer'] : []),
    ...extra.flatMap(([name, value]) => ['-H', value === undefined ? `${name}:` : `${name}: ${value}`]),
  ];
  if (signed === false) {
    const how = method === 'HEAD' ? ['--head'] : method === 'GET' ? [] : ['-X', method];
    return ['curl', '-i', ...how, '--path-as-is', '--globoff', ...flags, address].map(quote).join(' ');
  }
  const edits = [...editsOf(request, address, url), ...(request.lowerCaseNames ? ['s/^header = "[^:]*/\\L&/'] : [])];
  const sed = edits.length === 0 ? '' : ` | sed ${edits.map((edit) => `-e ${quote(edit)}`).join(' ')}`;
  const how = signed.method === undefined || signed.method === method ? [] : ['-X', method];
  const config = `--config <(${toSign(request, signed, options)}${sed})`;
  return ['curl', '-i', config, ...[...how, ...flags].map(quote)].join(' ');
}

const isSigned = (name: string): boolean =>
  Object.values(authHeaders).some((own) => own.toLowerCase() === name.toLowerCase());

const toSign = (
  { method, target }: RequestToSend,
  signed: Exclude<RequestToSend['signed'], false>,
  { url, userId, signFlags }: CurlOptions,
): string => {
  const isStranger = signed.withOtherSecret || signed.asOtherUser;
  const words = [
    'sealpost',
    'sign',
    signed.method ?? method,
    signed.target ?? target,
    '--url',
    serverAddress(url),
    ...(signed.skewMs === undefined ? [] : ['--skew', String(signed.skewMs / 1_000)]),
    ...(signed.body === undefined ? [] : ['--body', signed.body]),
    ...(isStranger || signed.inOtherName ? [] : signFlags),
  ];
  const user = signed.asOtherUser || signed.inOtherName ? strangers.userId : userId;
  const variables = [
    ...(isStranger || signed.inOtherName ? [`SEALPOST_USER_ID=${user} `] : []),
    ...(isStranger ? [`SEALPOST_SECRET=${strangers.secret} `] : []), // in another name, the secret is that of the shell
  ];
  return `${variables.join('')}${words.map(quote).join(' ')}`;
};

/** What is sent other than it was signed. */
const editsOf = (
  { target, signed, headers, isUpgrade }: RequestToSend,
  address: string,
  url: URL,
): readonly string[] => {
  const isElsewhere = (signed !== false && signed.target !== undefined && signed.target !== target) || isUpgrade;
  const sent = isElsewhere && address !== `${serverAddress(url)}${target}` ? address : undefined;
  const moved = signed !== false && signed.target !== undefined && signed.target !== target ? address : sent;
  return [
    ...(moved === undefined ? [] : [`s|^url = .*|url = "${quoteSed(moved)}"|`]),
    ...Object.entries(headers)
      .filter(([name]) => isSigned(name))
      .map(([name, value]) =>
        value === undefined
          ? `/^header = "${name}:/d`
          : `s|^header = "${name}:.*|header = "${name}: ${quoteSed(value)}"|`,
      ),
  ];
};
