// A worker thread does not inherit tsx's loader on Node 20, so it is registered here before the TypeScript is imported.
import { register } from 'tsx/esm/api';

register();
await import('./writer.ts');
