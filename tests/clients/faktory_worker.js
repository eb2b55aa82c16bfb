// A typical program with faktory-worker's worker: node faktory_worker.js PORT MODE
//
//   work       runs jobs of several kinds, and ends by itself
//   quiet      works until the server sends quiet, prints that, and waits for terminate
//   terminate  works until the server sends terminate, and finishes its current job
'use strict';

const { Worker, Client } = require('faktory-worker');
const { assert, run, eventually } = require('./check');

const port = Number(process.argv[2]);
const mode = process.argv[3];
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
    ['runs the pushed jobs', async () => {
      await worker.work();
      for (let i = 0; i < 100; ++i) await push('add', i, 1);
      await push('wait');
      const job = client.job('custom');
      job.custom = { who: 'Ada' };
      await job.push();
      await eventually(() => done.length === 102, 'a hundred and two jobs');
      assert(done.includes(100) && done.includes('waited') && done.includes('Ada'));
    }],
    ['reports a failed job, and runs it again when it is retried', async () => {
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

// Prints the events that the test waits for.
async function untilTerminated() {
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
  worker.fetch = async () => { // a fetch that waits during the change to quiet may return a job
    const job = await fetch();
    if (worker.quieted) console.log('fetches no more');
    return job;
  };
  await run([
    ['works until terminate', async () => {
      await worker.work();
      await push('slow');
      await stopped;
      assert.deepStrictEqual(finished, ['slow']);
      await client.close();
    }],
  ]);
}

(mode === 'work' ? work() : untilTerminated()).then(() => process.exit(0));
