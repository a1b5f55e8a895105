// What failures say of an answer.

/** An answer in one line: its status, its code, and the begin of its body. */
export const describeAnswer = (status: number | string | undefined, body: string): string => {
  const [, code = ''] = /"code":"(\w+)"/.exec(body) ?? [];
  return `${status} ${code} ${body.slice(0, 150).trim()}`;
};
