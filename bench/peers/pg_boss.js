// pg_boss.js POSTGRES_URL SECONDS single|batched
'use strict';
const PgBoss = require('pg-boss');
const { cycle, drive, together } = require('./cycle');

const [connectionString, seconds, mode] = process.argv.slice(2);
const isBatched = mode === 'batched';
const BATCH = 1000;

drive(async () => {
  const boss = new PgBoss({ connectionString, max: 16, supervise: false, schedule: false });
  await boss.start();
  const queue = `bench_${mode}`;
  await boss.createQueue(queue);
  const specs = Array.from({ length: BATCH }, (_, part) => ({ name: queue, data: { part } }));
  return cycle({
    inFlight: isBatched ? 4 : 64,
    seconds: +seconds,
    accept: async () => {
      if (!isBatched) {
        await boss.send(queue, { part: 1 });
        return 1;
      }
      await boss.insert(specs);
      return BATCH;
    },
    run: () => together(isBatched ? 4 : 16, async () => {
      const jobs = await boss.fetch(queue, { batchSize: isBatched ? 100 : 1 });
      if (jobs.length === 0) {
        return false;
      }
      await boss.complete(queue, jobs.map((job) => job.id));
      return true;
    }),
    left: () => boss.getQueueSize(queue, { before: 'completed' }),
  });
});
