/**
 * Measures the floor: the least time to create the files of a folder on all cores, when all content is already in
 * memory.
 *
 *     node bench/floor.cjs FROM TO [THREADS]
 *
 * Copies the folder in portions that fit into memory. Times only the creation of folders and files, not the reading.
 * Prints JSON.
 */
const { closeSync, linkSync, lstatSync, mkdirSync, openSync, readdirSync, readFileSync, writeSync } = require('node:fs');
const { availableParallelism } = require('node:os');
const { join } = require('node:path');
const { isMainThread, parentPort, Worker, workerData } = require('node:worker_threads');

const PORTION_BYTES = 512 * 1024 * 1024;

if (isMainThread) main();
else work();

async function main() {
  const [from, to, threads = availableParallelism()] = process.argv.slice(2);
  const { folders, files } = list(from);
  const workers = Array.from({ length: Number(threads) }, () => new Worker(__filename, { workerData: { from, to } }));
  const ask = (messages) =>
    Promise.all(
      workers.map((worker, i) => {
        worker.postMessage(messages[i]);
        return new Promise((resolve) => worker.once('message', resolve));
      }),
    );
  const totals = { files: 0, bytes: 0, seconds: 0, cpuSeconds: 0 };
  const timed = async (run) => {
    const [wall, cpu] = [performance.now(), process.cpuUsage()];
    await run();
    const { user, system } = process.cpuUsage(cpu);
    totals.seconds += (performance.now() - wall) / 1000;
    totals.cpuSeconds += (user + system) / 1e6;
  };
  await timed(async () => {
    for (const folder of folders) mkdirSync(join(to, folder), { recursive: true });
  });
  for (let at = 0; at < files.length; ) {
    const shares = workers.map(() => []);
    let bytes = 0;
    for (; at < files.length && bytes < PORTION_BYTES; at += 1) {
      shares[at % workers.length].push(files[at].paths);
      bytes += files[at].size;
      totals.files += files[at].paths.length;
    }
    totals.bytes += bytes;
    await ask(shares.map((paths) => ({ kind: 'load', paths })));
    await timed(() => ask(workers.map(() => ({ kind: 'write' }))));
  }
  console.log(JSON.stringify(totals));
  process.exit(0);
}

/** Lists all folders, parents first, and all files. Paths of the same file (hard links) are in one group. */
function list(root) {
  const folders = [''];
  const byInode = new Map();
  for (let i = 0; i < folders.length; i += 1) {
    for (const entry of readdirSync(join(root, folders[i]), { withFileTypes: true })) {
      const path = folders[i] === '' ? entry.name : `${folders[i]}/${entry.name}`;
      if (entry.isDirectory()) {
        folders.push(path);
        continue;
      }
      const { ino, size } = lstatSync(join(root, path));
      const known = byInode.get(ino);
      if (known === undefined) byInode.set(ino, { size, paths: [path] });
      else known.paths.push(path);
    }
  }
  return { folders, files: [...byInode.values()] };
}

function work() {
  const { from, to } = workerData;
  let share = [];
  parentPort.on('message', (message) => {
    if (message.kind === 'load') {
      share = message.paths.map((paths) => ({ paths: paths.map((path) => `${to}/${path}`), bytes: readFileSync(`${from}/${paths[0]}`) }));
    } else {
      for (const { paths, bytes } of share) {
        const [first] = paths;
        const handle = openSync(first, 'wx');
        writeSync(handle, bytes);
        closeSync(handle);
        for (let i = 1; i < paths.length; i += 1) linkSync(first, paths[i]);
      }
    }
    parentPort.postMessage('done');
  });
}
