// The signature check that all peers share: three headers, the clock, an HMAC.
import { createHmac, timingSafeEqual } from 'node:crypto';

const emptyBodySha256 = 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855';
const skewMaxMs = 5_000;

/** Is this request signed by one of the accounts, a map from user IDs to secrets? */
export const isAuthentic = (accounts, { method, url, headers }) => {
  const userId = headers.authorization;
  const timestamp = headers['x-authorization-timestamp'];
  const signature = headers['x-authorization-signature-sha256'];
  const secret = accounts.get(userId);
  if (secret === undefined || timestamp === undefined || !/^[0-9a-f]{64}$/.test(signature)) return false;
  if (!(Math.abs(Date.now() - Number(timestamp)) <= skewMaxMs)) return false;
  const signed = `${method} ${url} ${emptyBodySha256} ${userId} ${timestamp}`;
  const expected = createHmac('sha256', secret).update(signed).digest();
  return timingSafeEqual(expected, Buffer.from(signature, 'hex'));
};
