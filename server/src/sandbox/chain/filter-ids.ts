// Counts the filters of a chain: EDR collects events for each one, and has no bound.

/** Filters of all clients together. */
const filtersMax = 100;

const creating = /^eth_new\w*Filter$/;
const reading = /^eth_getFilter(Changes|Logs)$/;

export type FilterIds = {
  /** Records a call and its result. Returns the filter to remove, the least recently used one, where there are too many. */
  readonly used: (method: string, params: unknown, result: unknown) => string | undefined;
};

export const createFilterIds = (): FilterIds => {
  const ids = new Set<string>(); // least recently used first
  return {
    used: (method, params, result) => {
      const [id] = creating.test(method) ? [result] : Array.isArray(params) ? params : [];
      if (typeof id !== 'string') return undefined;
      if (method === 'eth_uninstallFilter') ids.delete(id);
      else if (creating.test(method) || (reading.test(method) && ids.delete(id))) ids.add(id);
      const [oldest] = ids;
      if (ids.size <= filtersMax || oldest === undefined) return undefined;
      ids.delete(oldest);
      return oldest;
    },
  };
};
