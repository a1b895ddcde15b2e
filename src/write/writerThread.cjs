// A worker thread has no TypeScript loader of its own on Node 20. tsx's hooks for require() work in the thread itself; its hooks for import
// would start another thread for each writer.
try {
  require('tsx/cjs/api').register();
  require('./writer.ts');
} catch (error) {
  // A loader that may open no more files says that a module is missing. Opening one file says what is true.
  const { closeSync, openSync } = require('node:fs');
  closeSync(openSync(__filename));
  throw error;
}
