// The client's front door.
export type { AnswerDetails, CallOptions } from './requester.ts';
