// The way from a stream to a new alert on it, with its price filled in.
import { formatDecimal } from '@sealpost/client';
import { useExplorer } from '../state/explorer.ts';

export function AddAlert({ feedId }: { readonly feedId: string }) {
  const { live } = useExplorer();
  const price = live.latest(feedId).value?.decoded?.price;
  const level = price === undefined ? '' : `&level=${formatDecimal(price)}`;
  return (
    <a class="button" href={`/alerts?feed=${feedId}${level}`}>
      Add alert
    </a>
  );
}
