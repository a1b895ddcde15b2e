/** Reads Parquet files of other mirrors for `npm run pull`, in a process of its own. Not a command for people. */
import { createInterface } from 'node:readline';
import { answerRequests } from '../src/pull/mirror/rows/readStrangersRows.ts';

void answerRequests(createInterface({ input: process.stdin }), (line) => void process.stdout.write(line));
