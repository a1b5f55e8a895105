// The arguments for a verifier contract: the report, and the fee token in either encoding.
import { type FeeTokenEncoding, SealpostError, withFeeToken } from '@sealpost/client';
import { useId, useState } from 'preact/hooks';
import { Copy } from '../components.tsx';

type Argument = { readonly name: string; readonly about: string; readonly hex: string };

const choices: readonly { readonly encoding: FeeTokenEncoding; readonly title: string; readonly about: string }[] = [
  {
    encoding: 'argument',
    title: 'Token as a second argument',
    about: 'For newer contracts. No token means billing by subscription.',
  },
  {
    encoding: 'appended',
    title: 'Token inside the report',
    about: 'For older contracts: one argument, with the token at its end.',
  },
];

/** The arguments, or what is wrong with the input. */
const readArguments = (
  fullReport: string,
  encoding: FeeTokenEncoding,
  token: string,
): readonly Argument[] | { readonly problem: string } => {
  try {
    if (encoding === 'argument') {
      const [payload, parameter] = withFeeToken(fullReport, token === '' ? undefined : token);
      return [
        { name: 'payload', about: 'bytes, the report unchanged', hex: payload },
        {
          name: 'parameterPayload',
          about: token === '' ? 'bytes, empty: billed by subscription' : 'bytes, the fee token',
          hex: parameter,
        },
      ];
    }
    if (token === '') return { problem: 'Enter the address of a fee token: this encoding needs one.' };
    const [payload] = withFeeToken(fullReport, token, 'appended');
    return [{ name: 'payload', about: 'bytes, the report with the fee token inside', hex: payload }];
  } catch (error) {
    if (error instanceof SealpostError)
      return { problem: 'Enter the address of the token’s contract: 0x and 40 hex digits.' };
    throw error;
  }
};

export const ReportPayload = ({ fullReport }: { readonly fullReport: string }) => {
  const [encoding, setEncoding] = useState<FeeTokenEncoding>('argument');
  const [token, setToken] = useState('');
  const id = useId();
  const read = readArguments(fullReport, encoding, token.trim());
  const problem = 'problem' in read ? read.problem : undefined;
  return (
    <section class="card payload" aria-labelledby="payload-title">
      <h2 id="payload-title">Verify on-chain</h2>
      <p class="muted small">
        Arguments for the verifier contract’s <code>verify</code>.
      </p>
      <fieldset class="choices">
        <legend class="unseen">Fee token encoding</legend>
        {choices.map((choice) => (
          <label key={choice.encoding} class="choice">
            <input
              type="radio"
              name={`${id}-encoding`}
              checked={encoding === choice.encoding}
              onChange={() => setEncoding(choice.encoding)}
            />
            <span>
              {choice.title}
              <span class="choice-about">{choice.about}</span>
            </span>
          </label>
        ))}
      </fieldset>
      <label class="field">
        <span>Fee token{encoding === 'argument' ? ' (none for billing by subscription)' : ''}</span>
        <input
          class="mono"
          value={token}
          placeholder="0x…"
          spellcheck={false}
          autocomplete="off"
          aria-invalid={problem !== undefined}
          aria-describedby={`${id}-problem`}
          onInput={(event) => setToken(event.currentTarget.value)}
        />
      </label>
      <p id={`${id}-problem`} class="bad small" role="status">
        {problem}
      </p>
      {'problem' in read ? null : (
        <dl class="arguments">
          {read.map((argument) => (
            <ArgumentLine key={argument.name} argument={argument} />
          ))}
        </dl>
      )}
    </section>
  );
};

const ArgumentLine = ({ argument: { name, about, hex } }: { readonly argument: Argument }) => (
  <div class="argument">
    <dt>
      <code>{name}</code>{' '}
      <span class="muted small">
        {about}, {(hex.length - 2) / 2} bytes
      </span>
      <Copy text={hex} label={`Copy ${name}`} />
    </dt>
    <dd>
      <code class="clipped">{hex}</code>
    </dd>
  </div>
);
