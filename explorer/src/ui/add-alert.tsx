// The way from a stream to a new alert on it, with its price filled in.
import { formatDecimal } from '@sealpost/client';
import { useExplorer } from '../state/explorer.ts';

export const AddAlert = ({ feedId }: { readonly feedId: string }) => {
  const { live } = useExplorer();
  const newest = live.latest(feedId).value;
  const level = newest === undefined ? '' : `&level=${formatDecimal(newest.decoded.price)}`;
  return (
    <a class="button" href={`/alerts?feed=${feedId}${level}`}>
      Add alert
    </a>
  );
};
