// Lets require() load TypeScript in this thread, with tsx. Makes the exports of each module plain values, because tsx
// makes them getters, and calls of imported functions then take a tenth of the CPU time of a pull. The values are final
// once the module has run: no files import each other in a circle, and no export is reassigned.
const { _extensions } = require('node:module');

require('tsx/cjs/api').register();
const load = _extensions['.ts'];
_extensions['.ts'] = (module, path) => {
  load(module, path);
  module.exports = Object.defineProperty({ ...module.exports }, '__esModule', { value: true });
};
