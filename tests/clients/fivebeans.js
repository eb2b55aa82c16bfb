// A typical program with fivebeans, including its worker: node fivebeans.js PORT
'use strict';

const Beans = require('fivebeans');
const { assert, run } = require('./check');

const port = Number(process.argv[2]);

// Returns promises instead of taking callbacks; two values become an array.
function promised(client) {
  return new Proxy(client, {
    get(target, name) {
      if (typeof target[name] !== 'function') return target[name];
      return (...args) => new Promise((resolve, reject) => {
        target[name](...args, (error, ...values) => {
          if (error) reject(new Error(error));
          else resolve(values.length > 1 ? values : values[0]);
        });
      });
    },
  });
}

function connect() {
  return new Promise((resolve, reject) => {
    const client = new Beans.client('127.0.0.1', port);
    client.on('connect', () => resolve(Object.assign(promised(client), { raw: client })))
      .on('error', reject);
    client.connect();
  });
}

const refused = (promise, answer) => assert.rejects(promise, { message: answer });

let producer;
let worker;

run([
  ['connects twice', async () => {
    producer = await connect();
    worker = await connect();
  }],

  ['puts into a tube, reserves and deletes', async () => {
    assert.strictEqual(await producer.use('five'), 'five');
    assert.strictEqual(await worker.watch('five'), '2');
    assert.strictEqual(await worker.ignore('default'), '1');
    await refused(worker.ignore('five'), 'NOT_IGNORED');
    const id = await producer.put(0, 0, 60, JSON.stringify({ type: 'x', payload: 1 }));
    const [reserved, body] = await worker.reserve();
    assert.strictEqual(reserved, id);
    assert.deepStrictEqual(JSON.parse(body), { type: 'x', payload: 1 });
    await worker.destroy(id);
    await refused(worker.destroy(id), 'NOT_FOUND');
    await refused(worker.reserve_with_timeout(0), 'TIMED_OUT');
  }],

  ['gets replies in the order of its pipelined commands', async () => {
    const ids = await Promise.all(
      Array.from({ length: 500 }, (_, i) => producer.put(5, 0, 60, `n${i}`)));
    const taken = await Promise.all(ids.map(() => worker.reserve()));
    assert.deepStrictEqual(taken.map(([id]) => id), ids);
    assert.deepStrictEqual(taken.map(([, body]) => String(body)), ids.map((_, i) => `n${i}`));
    await Promise.all(ids.map((id) => worker.destroy(id)));
  }],

  ['releases, buries, kicks and touches', async () => {
    const id = await producer.put(7, 0, 60, 'job');
    await worker.reserve();
    await worker.touch(id);
    await worker.release(id, 9, 0);
    await worker.reserve();
    await worker.bury(id, 9);
    const [buried] = await producer.peek_buried();
    assert.strictEqual(buried, id);
    assert.strictEqual(await producer.kick(5), '1');
    const stats = await producer.stats_job(id);
    assert.strictEqual(stats.state, 'ready');
    assert.strictEqual(stats.tube, 'five');
    assert.strictEqual(stats.pri, 9);
    assert.strictEqual(stats.reserves, 2);
    assert.strictEqual(stats.releases, 1);
    assert.strictEqual(stats.buries, 1);
    assert.strictEqual(stats.kicks, 1);
    const [ready, body] = await producer.peek_ready();
    assert.strictEqual(ready, id);
    assert.strictEqual(String(body), 'job');
    await worker.reserve();
    await worker.destroy(id);
  }],

  ['delays a job, peeks at it, and kicks it', async () => {
    const id = await producer.put(0, 3600, 60, 'later');
    const [delayed] = await producer.peek_delayed();
    assert.strictEqual(delayed, id);
    assert.strictEqual(String((await producer.peek(id))[1]), 'later');
    await producer.kick_job(id);
    const [reserved] = await worker.reserve_with_timeout(30);
    assert.strictEqual(reserved, id);
    await worker.destroy(id);
  }],

  ['pauses a tube, and ends the pause', async () => {
    await producer.pause_tube('five', 600);
    const id = await producer.put(0, 0, 60, 'held back');
    await refused(worker.reserve_with_timeout(0), 'TIMED_OUT');
    const waits = worker.reserve_with_timeout(30);
    await producer.pause_tube('five', 0);
    const [reserved] = await waits;
    assert.strictEqual(reserved, id);
    await worker.destroy(id);
  }],

  ['reads lists and statistics', async () => {
    assert.strictEqual(await producer.list_tube_used(), 'five');
    assert((await producer.list_tubes()).includes('five'));
    assert.deepStrictEqual(await worker.list_tubes_watched(), ['five']);
    const tube = await producer.stats_tube('five');
    assert.strictEqual(tube['current-jobs-ready'], 0);
    assert(tube['total-jobs'] >= 503);
    assert.strictEqual(tube['current-using'], 1);
    assert.strictEqual(tube['current-watching'], 1);
    const stats = await producer.stats();
    assert(stats['total-jobs'] >= 503);
    assert.strictEqual(stats['max-job-size'], 65535);
    await refused(producer.stats_tube('nobody-uses-this'), 'NOT_FOUND');
  }],

  ['its own worker handles jobs, buries and releases them', async () => {
    const seen = [];
    const handlers = {
      good: () => ({ work: (payload, done) => { seen.push(payload); done('success'); } }),
      bad: () => ({ work: (payload, done) => { seen.push(payload); done('bury'); } }),
    };
    const runner = new Beans.worker({
      id: 'five', host: '127.0.0.1', port, handlers: { good: handlers.good(), bad: handlers.bad() },
      ignoreDefault: true,
    });
    runner.on('error', (error) => { throw error; });
    runner.start(['five']);
    const finished = new Promise((resolve) => {
      let deleted = 0;
      let buried = 0;
      const check = () => { if (deleted === 20 && buried === 1) resolve(); };
      runner.on('job.deleted', () => { ++deleted; check(); });
      runner.on('job.buried', () => { ++buried; check(); });
    });
    for (let i = 0; i < 20; ++i) {
      await producer.put(0, 0, 60, JSON.stringify({ type: 'good', payload: i }));
    }
    await producer.put(0, 0, 60, JSON.stringify({ type: 'bad', payload: 'bad' }));
    await finished;
    assert.deepStrictEqual(seen, [...Array(20).keys(), 'bad']);
    const stopped = new Promise((resolve) => runner.on('stopped', resolve));
    runner.stop();
    await producer.put(0, 0, 60, JSON.stringify({ type: 'good', payload: 'last' }));
    await stopped;
  }],

  ['quits', async () => {
    producer.raw.end();
    worker.raw.end();
  }],
]);
