// A typical program with faktory-worker's client: node faktory_client.js PORT [PASSWORD]
'use strict';

const { Client } = require('faktory-worker');
const { assert, run, eventually } = require('./check');

const port = Number(process.argv[2]);
const password = process.argv[3];
const client = new Client({ host: '127.0.0.1', port, password, wid: 'client-test' });

// Takes and acknowledges one job.
async function finish(queue) {
  const job = await client.fetch(queue);
  assert(job, `nothing in ${queue}`);
  assert.strictEqual(await client.ack(job.jid), 'OK');
  return job;
}

run([
  ['connects, and begins with nothing', async () => {
    await client.connect();
    assert.strictEqual(await client.flush(), 'OK');
    assert.strictEqual(await client.beat(), 'OK');
  }],

  ['pushes a job and fetches and acknowledges it', async () => {
    const args = [1, 'two', { 3: null }];
    const jid = await client.push({ jobtype: 'mail', queue: 'default', args });
    const job = await finish('default');
    assert.strictEqual(job.jid, jid);
    assert.strictEqual(job.jobtype, 'mail');
    assert.deepStrictEqual(job.args, args);
    assert(job.enqueued_at && job.created_at, JSON.stringify(job));
  }],

  ['keeps custom data and unknown fields', async () => {
    const made = client.job('mail', 'x');
    made.custom = { locale: 'fr', deep: [1, { a: 2 }] };
    made.payload.unheard_of = 'stays';
    await made.push();
    const job = await finish('default');
    assert.deepStrictEqual(job.custom, { locale: 'fr', deep: [1, { a: 2 }] });
    assert.strictEqual(job.unheard_of, 'stays');
  }],

  ['fetches from the first of its queues that has a job', async () => {
    await client.push({ jobtype: 'a', queue: 'low', args: [] });
    await client.push({ jobtype: 'b', queue: 'critical', args: [] });
    const first = await client.fetch('critical', 'low');
    const second = await client.fetch('critical', 'low');
    assert.deepStrictEqual([first.queue, second.queue], ['critical', 'low']);
    await client.ack(first.jid);
    await client.ack(second.jid);
  }],

  ['gets null from an empty queue', async () => {
    assert.strictEqual(await client.fetch('nobody-pushes-here'), null);
  }],

  ['waits for a job that comes while it fetches', async () => {
    // A fetch waits two seconds; on a slow machine it may time out before the push arrives.
    for (let tries = 0; tries < 10; ++tries) {
      const waits = client.fetch('soon');
      const jid = await client.push({ jobtype: 'a', queue: 'soon', args: [] });
      const job = await waits;
      if (job) {
        assert.strictEqual(job.jid, jid);
        await client.ack(jid);
        return;
      }
      await finish('soon');
    }
    assert.fail('no waiting fetch received a job');
  }],

  ['pushes in bulk, and gets the rejected jobs', async () => {
    const jobs = Array.from({ length: 500 }, (_, i) => client.job('bulk', i));
    for (const job of jobs) job.queue = 'bulk';
    assert.deepStrictEqual(await client.pushBulk(jobs), {});
    const bad = client.job('bulk', 'x');
    bad.payload.jobtype = '';
    const good = client.job('bulk', 'y');
    good.queue = 'bulk';
    const rejected = await client.pushBulk([bad, good]);
    assert.deepStrictEqual(Object.keys(rejected), [bad.jid]);
    assert(rejected[bad.jid].reason.length > 0);
    for (let i = 0; i < 500; ++i) assert.strictEqual((await finish('bulk')).args[0], i);
    assert.strictEqual((await finish('bulk')).args[0], 'y');
  }],

  ['fails a job, which is fetched again with its error', async () => {
    const jid = await client.push({ jobtype: 'fails', queue: 'default', args: [] });
    await client.fetch('default');
    const error = Object.assign(new Error('it broke'), { code: 'E_BROKEN' });
    assert.strictEqual(await client.fail(jid, error), 'OK');
    assert.strictEqual(await client.retries.withJids(jid).requeue(), 'OK');
    const job = await finish('default');
    assert.strictEqual(job.jid, jid);
    assert.strictEqual(job.failure.message, 'it broke');
    assert.strictEqual(job.failure.errtype, 'E_BROKEN');
    assert.strictEqual(job.failure.retry_count, 0);
    assert(job.failure.failed_at && job.failure.backtrace.length > 0);
  }],

  ['forgets a job that is not to be retried', async () => {
    const once = client.job('once');
    once.retry = 0;
    await once.push();
    await client.fetch('default');
    await client.fail(once.jid, new Error('no'));
    assert.strictEqual(await client.dead.withJids(once.jid).requeue(), 'OK');
    assert.strictEqual(await client.fetch('default'), null);
  }],

  ['requeues a killed job from the dead jobs', async () => {
    const jid = await client.push({ jobtype: 'fails', queue: 'default', args: [] });
    await client.fetch('default');
    await client.fail(jid, new Error('no'));
    await client.retries.ofType('fails').kill();
    assert.strictEqual(await client.dead.ofType('fails').requeue(), 'OK');
    assert.strictEqual((await finish('default')).jid, jid);
  }],

  ['runs a job at its time, and not before', async () => {
    const soon = client.job('later', 'soon');
    soon.at = new Date(Date.now() + 300);
    const never = client.job('later', 'never');
    never.at = new Date(Date.now() + 3600 * 1000);
    await soon.push();
    await never.push();
    const job = await eventually(() => client.fetch('default'), 'a scheduled job');
    assert.strictEqual(job.jid, soon.jid);
    assert(Date.now() >= Date.parse(soon.at));
    await client.ack(job.jid);
    assert.strictEqual(await client.scheduled.withJids(never.jid).requeue(), 'OK');
    assert.strictEqual((await finish('default')).jid, never.jid);
  }],

  ['clears and discards scheduled jobs', async () => {
    const make = (jobtype) => {
      const job = client.job(jobtype);
      job.at = new Date(Date.now() + 3600 * 1000);
      return job.push();
    };
    await make('unwanted');
    await make('wanted');
    await client.scheduled.ofType('unwanted').discard();
    await client.scheduled.requeue();
    assert.strictEqual((await finish('default')).jobtype, 'wanted');
    await make('unwanted');
    await client.scheduled.clear();
    await client.scheduled.requeue();
    assert.strictEqual(await client.fetch('default'), null);
  }],

  ['pauses a queue, and resumes it', async () => {
    await client.send(['QUEUE', 'PAUSE', 'halted']);
    const jid = await client.push({ jobtype: 'a', queue: 'halted', args: [] });
    assert.strictEqual(await client.fetch('halted'), null);
    await client.send(['QUEUE', 'RESUME', 'halted']);
    assert.strictEqual((await finish('halted')).jid, jid);
  }],

  ['gets an error for an invalid job, and can continue', async () => {
    const short = { jobtype: 'a', jid: 'short', queue: 'default', args: [] };
    await assert.rejects(client.push(short), /jid/i);
    await assert.rejects(client.push({ jobtype: 'a', queue: 'no spaces!', args: [] }));
    await assert.rejects(client.send(['NONSENSE', '{}']), /ERR|unknown/i);
    await client.push({ jobtype: 'a', queue: 'default', args: [] });
    await finish('default');
  }],

  ['treats an ACK of an unknown job as successful', async () => {
    assert.strictEqual(await client.ack('there-is-no-such-job'), 'OK');
  }],

  ['reads the information of the server', async () => {
    await client.push({ jobtype: 'a', queue: 'counted', args: [] });
    const info = await client.info();
    assert.strictEqual(info.faktory.queues.counted, 1, JSON.stringify(info));
    assert(info.faktory.total_processed >= 500, JSON.stringify(info));
    assert(info.faktory.total_failures >= 3, JSON.stringify(info));
    assert.strictEqual(info.faktory.total_enqueued, 1, JSON.stringify(info));
    assert(info.server.uptime >= 0 && info.server.connections >= 1, JSON.stringify(info));
  }],

  ['empties the server', async () => {
    assert.strictEqual(await client.flush(), 'OK');
    const info = await client.info();
    assert.strictEqual(info.faktory.total_enqueued, 0, JSON.stringify(info));
    await client.close();
  }],
]);
