// A worker thread has no TypeScript loader of its own on Node 20. tsx's hooks for require() work in the thread itself; its hooks for import
// would start another thread for each writer.
require('tsx/cjs/api').register();
require('./writer.ts');
