// Loads the program of a thread with tsx, because on Node 20 a worker thread does not inherit the TypeScript loader.
// Uses the hooks of tsx for require(), which run in this thread, because its hooks for import would start another
// thread. The thread's argument is the program's path, relative to this folder.
try {
  require('./loadTypeScript.cjs');
  require(process.argv[2]);
} catch (error) {
  // At the limit of open files the loader reports a missing module. Opening a file here reports the true error
  // (EMFILE).
  const { closeSync, openSync } = require('node:fs');
  closeSync(openSync(__filename));
  throw error;
}
