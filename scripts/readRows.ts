/** The separate process in which `npm run pull` reads Parquet files of other mirrors. Not a command for users. */
import { createInterface } from 'node:readline';
import { answerRequests } from '../src/pull/mirror/rows/readStrangersRows.ts';

void answerRequests(createInterface({ input: process.stdin }), (line) => void process.stdout.write(line));
