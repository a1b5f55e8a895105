// The process of the load generator: runs one plan after the other, as it is told.
import { generate, type LoadPlan } from './generator.ts';

process.on('message', (plan: LoadPlan) => void generate(plan).then((result) => process.send?.(result)));
process.on('disconnect', () => process.exit(0));
process.send?.('ready');
