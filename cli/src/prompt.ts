// Prompts for one line on a terminal, without echo for secrets, or reads it from a pipe.
import type { Readable } from 'node:stream';
import { CommandError, interruptedCode, usageError } from './failure.ts';
import type { Input, MessageStream } from './session.ts';

const lineCharactersMax = 1_024;

/** Reads a line after a question, which only a terminal gets. `hidden` keeps what is typed off the screen. */
export async function askLine(
  input: Input,
  output: MessageStream,
  question: string,
  { hidden = false }: { readonly hidden?: boolean } = {},
): Promise<string> {
  const isTerminal = input.isTTY === true;
  const isRaw = isTerminal && hidden;
  if (isTerminal) output.write(question);
  input.setEncoding('utf8');
  if (isRaw) input.setRawMode?.(true);
  try {
    return (await readLine(input)).trim();
  } finally {
    input.pause();
    if (isRaw) input.setRawMode?.(false);
    if (isRaw) output.write('\n');
  }
}

/** Reads up to the end of a line; what comes after it is left for the next question. */
const readLine = (input: Readable): Promise<string> =>
  new Promise((resolve, reject) => {
    let line: readonly string[] = [];
    const settle = (act: () => void): void => {
      input.off('data', take).off('end', end).off('error', fail);
      act();
    };
    const take = (chunk: string): void => {
      const characters = [...chunk];
      const stop = characters.findIndex((character) => '\r\n\x03\x04'.includes(character));
      line = edit(line, stop === -1 ? characters : characters.slice(0, stop));
      const key = characters[stop];
      if (line.length > lineCharactersMax)
        settle(() => reject(usageError(`The line has more than ${lineCharactersMax} characters.`)));
      else if (key === '\x03')
        settle(() => reject(new CommandError(interruptedCode({ reason: 'SIGINT' }), 'Interrupted.')));
      else if (key !== undefined)
        settle(() => {
          input.pause();
          const rest = characters.slice(stop + (key === '\r' && characters[stop + 1] === '\n' ? 2 : 1)).join('');
          if (rest !== '') input.unshift(rest, 'utf8');
          resolve(line.join(''));
        });
    };
    const end = (): void => settle(() => resolve(line.join('')));
    const fail = (error: Error): void => settle(() => reject(error));
    input.on('data', take).once('end', end).once('error', fail);
    input.resume(); // an earlier question has paused it
    if (input.readableEnded) end();
  });

/** What a terminal does with these keys while it echoes: Backspace, and Ctrl-U for the whole line. Other control keys do nothing. */
const edit = (line: readonly string[], keys: readonly string[]): readonly string[] => {
  let typed = [...line];
  for (const key of keys) {
    if (key === '\x7f' || key === '\b') typed.pop();
    else if (key === '\x15') typed = [];
    else if (key >= ' ') typed.push(key);
  }
  return typed;
};
