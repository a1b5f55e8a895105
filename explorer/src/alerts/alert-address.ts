// The alert that an address begins: `/alerts?feed=FEED_ID&level=PRICE`. The price is as in reports: a rate is a ratio.
import { isFeedId, parseLevel } from '../state/alerts/rules.ts';
import type { AddressProblem } from '../ui/address-problem.ts';

export type AlertAddress = {
  /** Empty if there is none. */
  readonly feedId: string;
  readonly level: string;
  readonly problems: readonly AddressProblem[];
};

export function readAlertAddress(query: URLSearchParams): AlertAddress {
  const feed = query.get('feed')?.toLowerCase();
  const level = query.get('level');
  const isFeed = isFeedId(feed);
  const isLevel = level !== null && parseLevel(level) !== undefined;
  return {
    feedId: isFeed ? feed : '',
    level: isLevel ? level : '',
    problems: [
      ...(feed === undefined || isFeed
        ? []
        : [{ name: 'feed', text: 'feed must be a feed ID: 0x and 64 hex digits.' }]),
      ...(level === null || isLevel ? [] : [{ name: 'level', text: 'level must be a price, such as 64120.55.' }]),
    ],
  };
}
