// Loaded before everything else, because a collection of garbage that has begun must end as it began. On a single core, the threads that V8 starts to
// mark garbage take it from the thread that answers: for 20 to 25 ms, every three seconds at half the load that it can bear. There the thread that
// answers marks garbage itself, in small steps (D231).
import { availableParallelism } from 'node:os';
import { setFlagsFromString } from 'node:v8';

if (availableParallelism() === 1) setFlagsFromString('--no-concurrent-marking');
