// Says which arguments of the address are ignored, why, and removes them.
import { useExplorer } from '../state/explorer.ts';
import type { AddressProblem } from './address-problem.ts';
import { Notice } from './components.tsx';

export function AddressProblems({ problems }: { readonly problems: readonly AddressProblem[] }) {
  const { router } = useExplorer();
  const remove = (name: string): void => {
    const query = new URLSearchParams(router.address.peek().query);
    query.delete(name);
    router.setQuery(query);
  };
  return (
    <>
      {problems.map(({ name, text }) => (
        <Notice
          key={name}
          kind="warning"
          title={`Ignored in the address: ${text}`}
          action={
            <button type="button" aria-label={`Remove ${name} from the address`} onClick={() => remove(name)}>
              Remove
            </button>
          }
        />
      ))}
    </>
  );
}
