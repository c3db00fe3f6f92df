// What the drivers share: a cycle is that jobs are accepted for some seconds, then all of them are run.
'use strict';

const now = () => Number(process.hrtime.bigint()) / 1e9;

// Runs `count` loops of `step` at once until each has answered false.
const together = (count, step) =>
  Promise.all(Array.from({ length: count }, async () => { while (await step()); }));

// accept(): accepts some jobs and answers how many. run(count): comes back when that many have ended. left(): how many
// have not; more than none means that somebody counted wrong, and there is no figure.
async function cycle({ inFlight, seconds, accept, run, left }) {
  let accepted = 0;
  const began = now();
  await together(inFlight, async () => {
    const more = await accept(); // apart: `accepted +=` would read it before the wait, and lose what others counted
    accepted += more;
    return now() - began < seconds;
  });
  const acceptSeconds = now() - began;
  const runBegan = now();
  await run(accepted);
  const runSeconds = now() - runBegan;
  const leftCount = await left();
  if (leftCount !== 0) {
    throw new Error(`${accepted} jobs were accepted, and ${leftCount} are left`);
  }
  return {
    accepts_per_s: accepted / acceptSeconds,
    runs_per_s: accepted / runSeconds,
    cycle_per_s: accepted / (acceptSeconds + runSeconds),
  };
}

// Prints the result of main() as the last line, and ends the process whatever is still open.
function drive(main) {
  main().then(
    (figures) => process.stdout.write(JSON.stringify(figures) + '\n', () => process.exit(0)),
    (error) => { process.stderr.write(`${error && error.stack || error}\n`, () => process.exit(1)); });
}

module.exports = { cycle, drive, together };
