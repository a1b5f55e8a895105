// WebSocket frames as bytes, for both sides.

export type FrameOptions = { readonly isMasked?: boolean; readonly isFinal?: boolean; readonly bits?: number };

/** One frame by RFC 6455, 5.2. */
export const frameOf = (
  opcode: number,
  payload: Uint8Array,
  { isMasked = false, isFinal = true, bits = 0 }: FrameOptions = {},
): Buffer => {
  const { length } = payload;
  const size = length < 126 ? Buffer.alloc(0) : Buffer.alloc(length < 65_536 ? 2 : 8);
  if (size.length === 2) size.writeUInt16BE(length);
  if (size.length === 8) size.writeBigUInt64BE(BigInt(length));
  const short = length < 126 ? length : length < 65_536 ? 126 : 127;
  const mask = isMasked ? Buffer.from([1, 2, 3, 4]) : Buffer.alloc(0);
  const body = isMasked ? Buffer.from(payload.map((byte, i) => byte ^ (mask[i % 4] as number))) : payload;
  return Buffer.concat([
    Uint8Array.of((isFinal ? 0x80 : 0) | bits | opcode, (isMasked ? 0x80 : 0) | short),
    size,
    mask,
    body,
  ]);
};

export const opcodes = { continuation: 0, text: 1, binary: 2, close: 8, ping: 9, pong: 10 } as const;

/** Takes the whole frames of a server from received bytes: unmasked, as servers send them. */
export const readFrames = (bytes: Buffer): readonly { readonly opcode: number; readonly payload: Buffer }[] => {
  const frames: { opcode: number; payload: Buffer }[] = [];
  for (let at = 0; at + 2 <= bytes.length; ) {
    const short = (bytes[at + 1] as number) & 0x7f;
    const start = at + (short < 126 ? 2 : short === 126 ? 4 : 10);
    if (start > bytes.length) break;
    const length =
      short < 126 ? short : short === 126 ? bytes.readUInt16BE(at + 2) : Number(bytes.readBigUInt64BE(at + 2));
    if (start + length > bytes.length) break;
    frames.push({ opcode: (bytes[at] as number) & 0x0f, payload: bytes.subarray(start, start + length) });
    at = start + length;
  }
  return frames;
};

/** Frames of every kind, whole, fragmented, and with what the standard forbids. */
export const sampleFrames = (isMasked: boolean, message: Buffer): readonly Buffer[] => {
  const frame = (opcode: number, payload: Uint8Array, options: FrameOptions = {}) =>
    frameOf(opcode, payload, { isMasked, ...options });
  const closing = Buffer.concat([Uint8Array.of(0x03, 0xe8), Buffer.from('bye')]);
  return [
    frame(opcodes.text, message),
    frame(opcodes.binary, message),
    Buffer.concat([
      frame(opcodes.text, message.subarray(0, 9), { isFinal: false }),
      frame(opcodes.ping, Buffer.from('p')),
      frame(opcodes.continuation, message.subarray(9)),
    ]),
    frame(opcodes.ping, Buffer.from('ping')),
    frame(opcodes.pong, Buffer.alloc(0)),
    frame(opcodes.close, closing),
    frame(opcodes.close, Buffer.alloc(0)),
    frame(opcodes.close, Uint8Array.of(0x03)),
    frame(opcodes.text, Uint8Array.of(0xff, 0xfe)),
    frame(3, Buffer.from('x')),
    frame(opcodes.text, Buffer.from('x'), { bits: 0x40 }),
    Buffer.concat([
      frame(opcodes.binary, message),
      frame(opcodes.text, Buffer.from('{}')),
      frame(opcodes.close, closing),
    ]),
  ];
};
