import type { Row } from '../bar.ts';

export const qualityBars = {} as const satisfies Readonly<Record<string, Row>>;
