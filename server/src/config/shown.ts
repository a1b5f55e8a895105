// The settings as they may be shown: every value but secrets.
import { hidePassword } from '../runtime/urls.ts';
import { type ResolvedSettings, rowOf, type SettingName, type SettingSource, settingNames } from './config.ts';

/** Does a parsed config file hold a secret, or an address with a password? */
export const holdsSecret = (content: unknown): boolean =>
  Object.entries(Object(content)).some(([name, value]) => {
    const known = settingNames.find((one) => one === name);
    if (known === undefined) return false;
    const { secret, mayHoldPassword } = rowOf(known);
    const holdsPassword = (one: unknown): boolean => typeof one === 'string' && hidePassword(one) !== one;
    return secret === true || (mayHoldPassword === true && [value].flat().some(holdsPassword)); // a list is rejected later, but its password is there
  });

/** A setting as it is shown. Secrets never are. */
export type ShownSetting = {
  readonly name: SettingName;
  readonly value: string | null;
  readonly source: SettingSource;
  readonly default: string | null;
  readonly env: string;
  readonly flag: string | null;
};

/** Every setting as shown to users: a secret is `(set)`, null means not set. */
export const showSettings = ({ values, sources }: ResolvedSettings): readonly ShownSetting[] =>
  settingNames.map((name) => {
    const { env, flag, defaultText, format = String, secret } = rowOf(name);
    const value = values[name];
    const text = value === undefined ? null : secret ? '(set)' : format(value);
    return {
      name,
      value: text,
      source: sources[name],
      default: defaultText ?? null,
      env,
      flag: flag?.split(' ')[0] ?? null,
    };
  });
