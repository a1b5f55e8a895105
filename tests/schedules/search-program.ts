// The process of a search (processes.ts), which ends with the one that started it.
import { describeFailure, type Search, searchSchedules } from './search.ts';

process.once('disconnect', () => process.exit(2));
const wanted = JSON.parse(process.argv[2] ?? '') as Search; // as processes.ts gives it
const { ran, outcome, failure } = await searchSchedules(wanted);
process.stdout.write(`${JSON.stringify({ ran, outcome, failure: failure && describeFailure(failure) })}\n`);
process.exit();
