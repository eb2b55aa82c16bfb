// A typical program with jackd: node jackd.js PORT
'use strict';

const Jackd = require('jackd');
const { assert, run, yamlValue } = require('./check');

const port = Number(process.argv[2]);
const connect = () => new Jackd().connect({ host: '127.0.0.1', port });

let producer;
let worker;

async function refused(promise, answer) {
  await assert.rejects(promise, (error) => {
    assert(String(error.message || error).includes(answer), `${error}`);
    return true;
  });
}

// jackd omits the end of the line, so the test sends it.
async function pauseTube(client, tube, delay) {
  const paused = client.pauseTube(tube, { delay });
  await client.write(Buffer.from('\r\n'));
  return paused;
}

run([
  ['connects twice', async () => {
    producer = await connect();
    worker = await connect();
    assert(producer.isConnected());
  }],

  ['puts a job and reserves and deletes it', async () => {
    const id = await producer.put('hello');
    const job = await worker.reserve();
    assert.strictEqual(job.id, id);
    assert.strictEqual(job.payload.toString(), 'hello');
    await worker.delete(id);
    await refused(worker.delete(id), 'NOT_FOUND');
  }],

  ['puts an object, and bytes that are no text', async () => {
    await producer.put({ name: 'Ada', list: [1, 2] });
    const job = await worker.reserve();
    assert.deepStrictEqual(JSON.parse(job.payload), { name: 'Ada', list: [1, 2] });
    await worker.delete(job.id);
    await producer.put('line\r\nanother\r\n\u00e4');
    const lines = await worker.reserve();
    assert.strictEqual(lines.payload.toString(), 'line\r\nanother\r\n\u00e4');
    await worker.delete(lines.id);
  }],

  ['gets the more urgent first, and equals in their order', async () => {
    const low = await producer.put('low', { priority: 10 });
    const first = await producer.put('first', { priority: 5 });
    const second = await producer.put('second', { priority: 5 });
    const urgent = await producer.put('urgent', { priority: 0 });
    for (const id of [urgent, first, second, low]) {
      const job = await worker.reserve();
      assert.strictEqual(job.id, id);
      await worker.delete(id);
    }
  }],

  ['has tubes of its own to use, watch and ignore', async () => {
    assert.strictEqual(await producer.use('mail'), 'mail');
    assert.strictEqual(await producer.getCurrentTube(), 'mail');
    const id = await producer.put('letter');
    await refused(worker.reserveWithTimeout(0), 'TIMED_OUT');
    assert.strictEqual(await worker.watch('mail'), 2);
    const watched = await worker.listTubesWatched();
    assert(watched.includes('- default') && watched.includes('- mail'), watched);
    assert.strictEqual(await worker.ignore('default'), 1);
    await refused(worker.ignore('mail'), 'NOT_IGNORED');
    const job = await worker.reserve();
    assert.strictEqual(job.id, id);
    await worker.delete(id);
    assert((await producer.listTubes()).includes('- mail'));
  }],

  ['releases a job, at once and later, with another priority', async () => {
    const id = await producer.put('again', { priority: 3 });
    await worker.reserve();
    await worker.release(id, { priority: 7 });
    let stats = await worker.statsJob(id);
    assert.strictEqual(yamlValue(stats, 'state'), 'ready');
    assert.strictEqual(yamlValue(stats, 'pri'), '7');
    assert.strictEqual(yamlValue(stats, 'releases'), '1');
    await worker.reserve();
    await worker.release(id, { delay: 3 });
    stats = await worker.statsJob(id);
    assert.strictEqual(yamlValue(stats, 'state'), 'delayed');
    const job = await worker.reserveWithTimeout(30);
    assert.strictEqual(job.id, id);
    await worker.delete(id);
  }],

  ['puts a job for later, peeks at it, and kicks it', async () => {
    const id = await producer.put('later', { delay: 3600 });
    assert.strictEqual((await producer.peekDelayed()).id, id);
    await refused(worker.reserveWithTimeout(0), 'TIMED_OUT');
    assert.strictEqual(await producer.kick(10), 1);
    assert.strictEqual((await producer.peekReady()).payload.toString(), 'later');
    const job = await worker.reserve();
    assert.strictEqual(job.id, id);
    await worker.delete(id);
  }],

  ['buries a job, peeks at it, and kicks it by its number', async () => {
    const id = await producer.put('bad');
    await worker.reserve();
    await worker.bury(id, 1);
    assert.strictEqual((await producer.peekBuried()).id, id);
    assert.strictEqual((await producer.peek(id)).payload.toString(), 'bad');
    assert.strictEqual(yamlValue(await producer.statsTube('mail'), 'current-jobs-buried'), '1');
    await producer.kickJob(id);
    await refused(producer.peekBuried(), 'NOT_FOUND');
    const job = await worker.reserve();
    assert.strictEqual(job.id, id);
    await worker.delete(id);
    await refused(producer.kickJob(id), 'NOT_FOUND');
    await refused(producer.peek(id), 'NOT_FOUND');
  }],

  ['reserves a job by its number', async () => {
    await producer.put('one');
    const id = await producer.put('two');
    const job = await worker.reserveJob(id);
    assert.strictEqual(job.payload.toString(), 'two');
    await refused(producer.reserveJob(id), 'NOT_FOUND');
    await worker.delete(id);
    await worker.delete((await worker.reserve()).id);
  }],

  ['touches a job, gets DEADLINE_SOON, and loses it', async () => {
    const id = await producer.put('slow', { ttr: 4 });
    await worker.reserve();
    await worker.touch(id);
    await refused(worker.reserve(), 'DEADLINE_SOON');
    const other = await connect();
    await other.watch('mail');
    const job = await other.reserveWithTimeout(30);
    assert.strictEqual(job.id, id);
    await refused(worker.touch(id), 'NOT_FOUND');
    assert.strictEqual(yamlValue(await other.statsJob(id), 'timeouts'), '1');
    await other.delete(id);
    await other.quit();
  }],

  ['pauses a tube, and ends the pause', async () => {
    await pauseTube(producer, 'mail', 600);
    const id = await producer.put('held back');
    await refused(worker.reserveWithTimeout(0), 'TIMED_OUT');
    assert.strictEqual(yamlValue(await producer.statsTube('mail'), 'pause'), '600');
    const waits = worker.reserveWithTimeout(30);
    await pauseTube(producer, 'mail', 0);
    assert.strictEqual((await waits).id, id);
    await worker.delete(id);
    await refused(pauseTube(producer, 'nobody-uses-this', 1), 'NOT_FOUND');
  }],

  ['reserves a job that a closed connection had reserved', async () => {
    const id = await producer.put('orphan', { ttr: 600 });
    const other = await connect();
    await other.watch('mail');
    assert.strictEqual((await other.reserve()).id, id);
    await other.quit();
    const job = await worker.reserveWithTimeout(30);
    assert.strictEqual(job.id, id);
    await worker.delete(id);
  }],

  ['waits for a job that is put later', async () => {
    const waits = worker.reserve();
    const id = await producer.put('at last');
    assert.strictEqual((await waits).id, id);
    await worker.delete(id);
  }],

  ['gets JOB_TOO_BIG for a large job', async () => {
    await refused(producer.put('x'.repeat(70000)), 'JOB_TOO_BIG');
    const id = await producer.put('x'.repeat(65535));
    const job = await worker.reserve();
    assert.strictEqual(job.payload.length, 65535);
    await worker.delete(id);
  }],

  ['reads statistics', async () => {
    const stats = await producer.stats();
    assert(Number(yamlValue(stats, 'cmd-put')) >= 15, stats);
    assert.strictEqual(yamlValue(stats, 'current-jobs-reserved'), '0');
    assert.strictEqual(yamlValue(stats, 'job-timeouts'), '1');
    assert(Number(yamlValue(stats, 'current-connections')) >= 2);
    assert.strictEqual(yamlValue(await producer.statsTube('mail'), 'name'), 'mail');
  }],

  ['many jobs one after the other', async () => {
    for (let i = 0; i < 300; ++i) await producer.put(`n${i}`);
    for (let i = 0; i < 300; ++i) {
      const job = await worker.reserve();
      assert.strictEqual(job.payload.toString(), `n${i}`);
      await worker.delete(job.id);
    }
  }],

  ['quits', async () => {
    await producer.quit();
    await worker.quit();
  }],
]);
