// graphile_worker.js POSTGRES_URL SECONDS single|batched
'use strict';
const { makeWorkerUtils, run: startWorker } = require('graphile-worker');
const { cycle, drive } = require('./cycle');

const [connectionString, seconds, mode] = process.argv.slice(2);
const BATCH = 1000;
const batched = { localQueue: { size: 500 }, completeJobBatchDelay: 0, failJobBatchDelay: 0 };

drive(async () => {
  const utils = await makeWorkerUtils({ connectionString, maxPoolSize: 8 });
  await utils.migrate();
  const specs = Array.from({ length: BATCH }, (_, part) => ({ identifier: 'nothing', payload: { part } }));
  const accept = {
    single: async () => { await utils.addJob('nothing', { part: 1 }); return 1; },
    batched: async () => { await utils.addJobs(specs); return BATCH; },
  }[mode];
  const left = () => utils.withPgClient(async (client) => {
    const { rows } = await client.query('SELECT count(*)::int AS count FROM graphile_worker.jobs');
    return rows[0].count;
  });
  const run = async (count) => {
    let done = 0, end;
    const ended = new Promise((resolve) => { end = resolve; });
    await startWorker({
      taskList: { nothing: async () => { if (++done === count) end(); } },
      noHandleSignals: true,
      preset: {
        worker: { connectionString, concurrentJobs: 24, maxPoolSize: 24, ...(mode === 'batched' ? batched : {}) },
      },
    });
    await ended;
    while (await left() > 0); // the ends of the last ones are being recorded
    if (done !== count) {
      throw new Error(`${count} jobs were accepted, ${done} were run`);
    }
  };
  return cycle({ inFlight: mode === 'batched' ? 4 : 64, seconds: +seconds, accept, run, left });
});
