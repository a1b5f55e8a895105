// The panel with the catalog's filters, and a chip for each active one.
import type { DiscoveryFilter } from '@sealpost/protocol';
import { useEffect, useState } from 'preact/hooks';
import { formatCount } from '../ui/format.ts';
import {
  type ActiveFilter,
  chosenOf,
  type DateFilter,
  dateFilterNames,
  type FilterValue,
  type FilterValues,
  filterLabels,
  type NameFilter,
  nameFilterNames,
  type RowCounts,
  toggleValue,
  withValue,
} from './filter.ts';

type FilterProps = {
  readonly values: FilterValues;
  readonly counts: RowCounts;
  /** The filters of the query that apply. */
  readonly filter: DiscoveryFilter;
  readonly query: URLSearchParams;
  readonly onChange: (query: URLSearchParams) => void;
};

/** Up to this many values are checkboxes; with more, the user types one. */
const boxesMax = 16;
/** Suggestions while the user types. */
const offersMax = 50;

export function FilterPanel({ isSignedIn, ...props }: FilterProps & { readonly isSignedIn: boolean }) {
  const [isDrawn, setDrawn] = useState(false);
  useEffect(() => setDrawn(true), []); // dates come in the next frame, because each takes as long as all other fields
  return (
    <section id="filters" class="filters card" aria-label="Filters">
      {nameFilterNames.map((name) => (
        <NameFilterField key={name} name={name} {...props} />
      ))}
      <HiddenField {...props} isSignedIn={isSignedIn} />
      {isDrawn && <DateFilterFields {...props} />}
    </section>
  );
}

const NameFilterField = ({
  name,
  values: { [name]: values },
  counts,
  query,
  onChange,
}: FilterProps & { readonly name: NameFilter }) => {
  const chosen = chosenOf(query, name);
  const toggle = (value: string): void => onChange(toggleValue(query, name, value));
  if (values.length > boxesMax) return <TypedValue name={name} values={values} chosen={chosen} onAdd={toggle} />;
  return (
    <fieldset>
      <legend>{filterLabels[name]}</legend>
      <div class="boxes">
        {values.map(({ value }) => (
          <label key={value} class="check">
            <input type="checkbox" checked={chosen.includes(value.toLowerCase())} onChange={() => toggle(value)} />
            <span>{value}</span>
            <span class="muted small">{formatCount(counts.of(name, value))}</span>
          </label>
        ))}
      </div>
    </fieldset>
  );
};

type TypedValueProps = {
  readonly name: NameFilter;
  readonly values: readonly FilterValue[];
  readonly chosen: readonly string[];
  readonly onAdd: (value: string) => void;
};

/** A text box for one of many values; each becomes a chip. */
const TypedValue = ({ name, values, chosen, onAdd }: TypedValueProps) => {
  const [typed, setTyped] = useState('');
  const [isAsked, setAsked] = useState(false); // no suggestions in the page before the first focus
  const lower = typed.trim().toLowerCase();
  const isFree = (value: string): boolean => !chosen.includes(value.toLowerCase());
  const offers = isAsked
    ? values.filter(({ value }) => value.toLowerCase().includes(lower) && isFree(value)).slice(0, offersMax)
    : [];
  const add = (text: string): void => {
    const found = values.find(({ value }) => value.toLowerCase() === text.trim().toLowerCase());
    setTyped(found === undefined ? text : '');
    if (found !== undefined && isFree(found.value)) onAdd(found.value);
  };
  const isUnknown = lower !== '' && offers.length === 0;
  return (
    <fieldset>
      <legend>
        <label for={`filter-${name}`}>{filterLabels[name]}</label>
      </legend>
      <input
        id={`filter-${name}`}
        list={`values-${name}`}
        value={typed}
        placeholder={`One of ${values.length}`}
        autocomplete="off"
        aria-describedby={`hint-${name}`}
        onFocus={() => setAsked(true)}
        onInput={(event) => add(event.currentTarget.value)}
      />
      <datalist id={`values-${name}`}>
        {offers.map(({ value }) => (
          <option key={value} value={value} />
        ))}
      </datalist>
      <p id={`hint-${name}`} class="muted small">
        {isUnknown
          ? 'No stream has this value.'
          : chosen.length === 0
            ? 'Type or choose one or more.'
            : `${chosen.length} chosen, shown above.`}
      </p>
    </fieldset>
  );
};

const dateGroups = [
  ['Created', 'created'],
  ['Decommission expected', 'expected_decommission'],
  ['Decommissioned', 'decommissioned'],
] as const;

const DateFilterFields = ({ filter, query, onChange }: FilterProps) => (
  <div class="filter-dates">
    {dateGroups.map(([legend, prefix]) => (
      <fieldset key={prefix}>
        <legend>{legend}</legend>
        {dateFilterNames
          .filter((name) => name === `${prefix}_after` || name === `${prefix}_before`)
          .map((name) => (
            <DayField key={name} {...{ name, filter, query, onChange }} />
          ))}
      </fieldset>
    ))}
    <p class="muted small">Dates in UTC. The date itself is not included.</p>
  </div>
);

const DayField = ({
  name,
  filter,
  query,
  onChange,
}: Omit<FilterProps, 'values' | 'counts'> & { readonly name: DateFilter }) => (
  <label class="day">
    <span class="small">{name.endsWith('after') ? 'after' : 'before'}</span>
    <input
      type="date"
      aria-label={filterLabels[name]}
      value={filter[name] === undefined ? '' : (query.get(name) ?? '')}
      onChange={(event) => onChange(withValue(query, name, event.currentTarget.value))}
    />
  </label>
);

const HiddenField = ({
  counts,
  filter,
  query,
  onChange,
  isSignedIn,
}: FilterProps & { readonly isSignedIn: boolean }) => (
  <fieldset>
    <legend>{filterLabels.hidden}</legend>
    <label class="check">
      <input
        type="checkbox"
        checked={filter.hidden === true}
        disabled={!isSignedIn}
        onChange={(event) => onChange(withValue(query, 'hidden', event.currentTarget.checked ? 'true' : ''))}
      />
      Include hidden streams
      {isSignedIn && <span class="muted small">{formatCount(counts.hidden)}</span>}
    </label>
    <p class="muted small">
      {isSignedIn ? 'Only those your account can read.' : 'Sign in with an account that can read them.'}
    </p>
  </fieldset>
);

export const FilterChips = ({
  active,
  onChange,
  onClear,
}: {
  readonly active: readonly ActiveFilter[];
  readonly onChange: (query: URLSearchParams) => void;
  readonly onClear: () => void;
}) => (
  <ul class="chips" aria-label="Active filters">
    {active.map(({ label, without }) => (
      <li key={label}>
        <button
          type="button"
          class="chip"
          title={label}
          aria-label={`Remove filter: ${label}`}
          onClick={() => onChange(without)}
        >
          <span>{label}</span>
          <svg width="10" height="10" viewBox="0 0 10 10" aria-hidden="true">
            <path d="m2 2 6 6M8 2 2 8" />
          </svg>
        </button>
      </li>
    ))}
    <li>
      <button type="button" class="quiet" onClick={onClear}>
        Clear filters
      </button>
    </li>
  </ul>
);
