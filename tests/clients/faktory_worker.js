// The normal program of a user of faktory-worker's worker: node faktory_worker.js PORT WHAT
//
//   work       does jobs of several kinds, and ends by itself
//   quiet      works until the server says quiet, and says so; then until it is told to terminate
//   terminate  works until the server says so, and finishes the job that it has
'use strict';

const { Worker, Client } = require('faktory-worker');
const { assert, run, eventually } = require('./check');

const port = Number(process.argv[2]);
const what = process.argv[3];
const options = { host: '127.0.0.1', port };
const client = new Client(options);

function makeWorker(registry, more = {}) {
  const worker = new Worker({ ...options, registry, concurrency: 5, beatInterval: 0.1, ...more });
  worker.on('error', (error) => console.error(`worker: ${error.message}`));
  return worker;
}

const push = (jobtype, ...args) => client.push({ jobtype, queue: 'default', args });

async function work() {
  const done = [];
  const failed = [];
  const worker = makeWorker({
    add: (a, b) => { done.push(a + b); },
    wait: async () => { await null; done.push('waited'); },
    fails: () => { throw new Error('on purpose'); },
    custom: () => ({ job }) => { done.push(job.custom.who); },
  });
  worker.on('fail', ({ job, error }) => failed.push([job.jobtype, error.message]));
  await run([
    ['does what is pushed', async () => {
      await worker.work();
      for (let i = 0; i < 100; ++i) await push('add', i, 1);
      await push('wait');
      const job = client.job('custom');
      job.custom = { who: 'Ada' };
      await job.push();
      await eventually(() => done.length === 102, 'a hundred and two jobs');
      assert(done.includes(100) && done.includes('waited') && done.includes('Ada'));
    }],
    ['says that a job failed, and does it again when it is retried', async () => {
      await push('fails');
      await push('nobody-registered-this');
      await eventually(() => failed.length === 2, 'two failures');
      assert(failed.some(([, message]) => message === 'on purpose'));
      await eventually(async () => {
        await client.retries.requeue();
        return failed.length >= 4;
      }, 'two more');
      await client.retries.clear();
    }],
    ['leaves nothing behind', async () => {
      const before = await client.info();
      assert.strictEqual(before.faktory.queues.default || 0, 0, JSON.stringify(before));
      await worker.stop();
      await client.close();
    }],
  ]);
}

// Says on standard output what the test waits for.
async function untilTold() {
  const finished = [];
  let release;
  const worker = makeWorker({
    slow: async () => {
      console.log('working');
      await new Promise((resolve) => { release = resolve; });
      finished.push('slow');
    },
    quick: () => { console.log('quick'); },
  });
  const stopped = new Promise((resolve) => {
    const stop = worker.stop.bind(worker);
    worker.stop = async () => {
      console.log('terminate');
      if (release) release();
      await stop();
      resolve();
    };
  });
  const quiet = worker.quiet.bind(worker);
  worker.quiet = () => {
    if (!worker.quieted) console.log('quiet');
    quiet();
  };
  const fetch = worker.fetch.bind(worker);
  worker.fetch = async () => { // the one that waits when it goes quiet may still bring a job
    const job = await fetch();
    if (worker.quieted) console.log('fetches no more');
    return job;
  };
  await run([
    ['works until it is told', async () => {
      await worker.work();
      await push('slow');
      await stopped;
      assert.deepStrictEqual(finished, ['slow']);
      await client.close();
    }],
  ]);
}

(what === 'work' ? work() : untilTold()).then(() => process.exit(0));
