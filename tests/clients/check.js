// Runs the steps of a script by name: prints the failed step and sets the exit code.
'use strict';

const assert = require('assert');

const PATIENCE_MS = 60 * 1000; // only a failing script waits that long

// Runs the steps in their order. A step is a claim and an async function.
async function run(steps) {
  const guard = setTimeout(() => {
    console.error('timed out');
    process.exit(1);
  }, PATIENCE_MS);
  for (const [claim, step] of steps) {
    try {
      await step();
      console.log(`ok: ${claim}`);
    } catch (error) {
      console.error(`not ok: ${claim}\n${error.stack || error}`);
      process.exit(1);
    }
  }
  clearTimeout(guard);
}

// Calls `check` until it returns a true value, and returns that.
async function eventually(check, what) {
  const end = Date.now() + PATIENCE_MS / 2;
  while (Date.now() < end) {
    const found = await check();
    if (found) return found;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  throw new Error(`timed out waiting for ${what}`);
}

// Returns the value of a key in beanstalk's statistics, which are YAML.
function yamlValue(text, key) {
  const found = new RegExp(`^${key}: "?([^"\n]*)"?$`, 'm').exec(text);
  assert(found, `no ${key} in:\n${text}`);
  return found[1];
}

module.exports = { assert, run, eventually, yamlValue };
