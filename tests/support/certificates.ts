// Self-signed certificates for tests, written as DER by hand: no tool of the machine is needed.
import { createSign, generateKeyPairSync, randomBytes } from 'node:crypto';

export type Certificate = { readonly cert: string; readonly key: string };

const tlv = (tag: number, ...parts: readonly Buffer[]): Buffer => {
  const content = Buffer.concat(parts);
  const size = content.length;
  const length = size < 128 ? [size] : size < 256 ? [0x81, size] : [0x82, size >> 8, size & 0xff];
  return Buffer.concat([Buffer.from([tag, ...length]), content]);
};
const sequence = (...parts: readonly Buffer[]): Buffer => tlv(0x30, ...parts);
const oid = (hex: string): Buffer => tlv(0x06, Buffer.from(hex, 'hex'));
const utcTime = (date: Date): Buffer =>
  tlv(
    0x17,
    Buffer.from(
      `${date
        .toISOString()
        .replaceAll(/[-:T]|\.\d+/g, '')
        .slice(2)}`,
      'latin1',
    ),
  );

const ecdsaWithSha256 = sequence(oid('2a8648ce3d040302'));
const dayMs = 86_400_000;

/** A certificate of a name for 127.0.0.1, with its key, both PEM. */
export const createCertificate = (commonName: string): Certificate => {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'prime256v1' });
  const name = sequence(tlv(0x31, sequence(oid('550403'), tlv(0x0c, Buffer.from(commonName)))));
  const nowMs = Date.now();
  const altNames = tlv(0x04, sequence(tlv(0x87, Buffer.from([127, 0, 0, 1]))));
  const signed = sequence(
    tlv(0xa0, tlv(0x02, Buffer.from([2]))),
    tlv(0x02, Buffer.concat([Buffer.from([1]), randomBytes(8)])),
    ecdsaWithSha256,
    name,
    sequence(utcTime(new Date(nowMs - dayMs)), utcTime(new Date(nowMs + dayMs))),
    name,
    publicKey.export({ type: 'spki', format: 'der' }),
    tlv(0xa3, sequence(sequence(oid('551d11'), altNames))),
  );
  const signature = createSign('sha256').update(signed).sign(privateKey);
  const der = sequence(signed, ecdsaWithSha256, tlv(0x03, Buffer.from([0]), signature));
  const lines = der.toString('base64').match(/.{1,64}/g) ?? [];
  return {
    cert: `-----BEGIN CERTIFICATE-----\n${lines.join('\n')}\n-----END CERTIFICATE-----\n`,
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
  };
};
