// bullmq.js REDIS_SOCKET SECONDS single|batched
'use strict';
const { Queue, Worker } = require('bullmq');
const { cycle, drive } = require('./cycle');

const [path, seconds, mode] = process.argv.slice(2);
const connection = { path, maxRetriesPerRequest: null };
const BATCH = 1000;

function runAll(name, count) {
  let done = 0;
  return new Promise((resolve, reject) => {
    const worker = new Worker(name, async () => {}, { connection, concurrency: 100 });
    worker.on('completed', () => { if (++done === count) resolve(); });
    worker.on('error', reject);
  });
}

drive(async () => {
  const queue = new Queue(`bench-${mode}`, { connection, defaultJobOptions: { removeOnComplete: true } });
  await queue.waitUntilReady();
  const specs = Array.from({ length: BATCH }, (_, part) => ({ name: 'nothing', data: { part } }));
  const accept = {
    single: async () => { await queue.add('nothing', { part: 1 }); return 1; },
    batched: async () => { await queue.addBulk(specs); return BATCH; },
  }[mode];
  return cycle({
    inFlight: mode === 'batched' ? 4 : 64,
    seconds: +seconds,
    accept,
    run: (count) => runAll(queue.name, count),
    left: () => queue.getJobCountByTypes('waiting', 'active', 'delayed'),
  });
});
