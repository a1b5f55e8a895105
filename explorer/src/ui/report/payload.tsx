// The "Verify on-chain" card: the call of a verifier contract as calldata, as arguments, and as a `cast` command.
import { SealpostError } from '@sealpost/client';
import { useId, useState } from 'preact/hooks';
import { Copy } from '../components.tsx';
import {
  createOnchainCall,
  feeTokenChoices,
  type OnchainCall,
  type OnchainFunction,
  type OnchainValue,
  onchainFunctions,
} from './onchain.ts';

/** The chosen token: none, one of the list, or another that is typed in. */
const noToken = '';
const otherToken = 'other';

/** The call, or what is wrong with the input. */
const readCall = (
  fullReport: string,
  name: OnchainFunction,
  token: string | undefined,
): OnchainCall | { readonly problem: string } => {
  if (name === 'older' && token === undefined)
    return { problem: 'Choose a fee token: this function needs one inside the report.' };
  try {
    return createOnchainCall(fullReport, name, token);
  } catch (error) {
    if (error instanceof SealpostError)
      return { problem: 'Enter the address of the token’s contract: 0x and 40 hex digits.' };
    throw error;
  }
};

export function ReportPayload({ fullReport }: { readonly fullReport: string }) {
  const [name, setName] = useState<OnchainFunction>('verify');
  const [choice, setChoice] = useState(noToken);
  const [typed, setTyped] = useState('');
  const id = useId();
  const token = choice === otherToken ? typed.trim() : choice === noToken ? undefined : choice;
  const call = readCall(fullReport, name, token);
  const problem = 'problem' in call ? call.problem : undefined;
  return (
    <section class="card payload" aria-labelledby="payload-title">
      <h2 id="payload-title">Verify on-chain</h2>
      <FunctionChoice chosen={name} choose={setName} />
      <label class="field">
        <span>Fee token</span>
        <select value={choice} onChange={(event) => setChoice(event.currentTarget.value)}>
          <option value={noToken}>None (no fee, or billing by subscription)</option>
          {feeTokenChoices.map(({ address, title }) => (
            <option key={address} value={address}>
              {title}
            </option>
          ))}
          <option value={otherToken}>Another token…</option>
        </select>
      </label>
      {choice === otherToken && (
        <label class="field">
          <span>Address of the fee token</span>
          <input
            class="mono"
            value={typed}
            placeholder="0x…"
            spellcheck={false}
            autocomplete="off"
            aria-invalid={problem !== undefined}
            aria-describedby={`${id}-problem`}
            onInput={(event) => setTyped(event.currentTarget.value)}
          />
        </label>
      )}
      <p id={`${id}-problem`} class="bad small" role="status">
        {problem}
      </p>
      {'problem' in call ? null : (
        <>
          <dl class="arguments">
            {call.values.map((value) => (
              <ValueLine key={value.name} value={value} />
            ))}
          </dl>
          <CastCommand text={call.cast} />
        </>
      )}
    </section>
  );
}

type ChoiceProps = { readonly chosen: OnchainFunction; readonly choose: (name: OnchainFunction) => void };

const functionNames = Object.keys(onchainFunctions) as OnchainFunction[]; // the keys of the table

const FunctionChoice = ({ chosen, choose }: ChoiceProps) => {
  const id = useId();
  return (
    <fieldset class="choices">
      <legend class="small muted">Function of the verifier contract</legend>
      {functionNames.map((name) => (
        <label key={name} class="choice">
          <input type="radio" name={`${id}-function`} checked={chosen === name} onChange={() => choose(name)} />
          <span>
            {onchainFunctions[name].title}
            <span class="choice-about">{onchainFunctions[name].about}</span>
          </span>
        </label>
      ))}
    </fieldset>
  );
};

const ValueLine = ({ value: { name, about, hex } }: { readonly value: OnchainValue }) => (
  <div class="argument">
    <dt>
      <span>
        <code>{name}</code>{' '}
        <span class="muted small">
          {about}, {(hex.length - 2) / 2} bytes
        </span>
      </span>
      <Copy text={hex} label={`Copy ${name}`} />
    </dt>
    <dd>
      <code class="clipped">{hex}</code>
    </dd>
  </div>
);

const CastCommand = ({ text }: { readonly text: string }) => (
  <>
    <h3 class="small">With cast</h3>
    {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, also by keyboard */}
    <pre class="code cast" tabIndex={0}>
      <code>{text}</code>
    </pre>
    <div class="code-foot">
      <p class="muted small">
        Set <code>SEALPOST_VERIFIER</code> to the address of the verifier proxy and <code>SEALPOST_RPC_URL</code> to a
        node of its chain; <code>sealpost sandbox --chain</code> prints both. If the proxy takes a fee, add{' '}
        <code>--from</code> and <code>--value</code>.
      </p>
      <Copy text={text} label="Copy cast command">
        Copy
      </Copy>
    </div>
  </>
);
