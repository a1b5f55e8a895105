// How listeners speak TLS.
import { constants } from 'node:crypto';
import { handshakeMaxMs } from './guard.ts';

/** ECDHE with AEAD alone: forward secrecy, and no padding to attack (D128). */
const ciphers = [
  'TLS_AES_256_GCM_SHA384',
  'TLS_CHACHA20_POLY1305_SHA256',
  'TLS_AES_128_GCM_SHA256',
  'ECDHE+AESGCM',
  'ECDHE+CHACHA20',
].join(':');

export const tlsOptions = {
  minVersion: 'TLSv1.2',
  ciphers,
  honorCipherOrder: true,
  // A client of TLS 1.2 could ask for handshakes without end on one connection.
  secureOptions: constants.SSL_OP_NO_RENEGOTIATION,
  handshakeTimeout: handshakeMaxMs,
} as const;
