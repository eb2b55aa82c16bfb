// What every script here needs: the steps of a program with names, so that a failure says where it
// was, and an end with a code that says whether all went well.
'use strict';

const assert = require('assert');

const PATIENCE_MS = 60 * 1000; // of a script that fails; none waits for it

// Runs the steps in their order. A step is a claim and an async function.
async function run(steps) {
  const guard = setTimeout(() => {
    console.error('it takes too long');
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

// Until `look` gives something true, which is returned.
async function eventually(look, what) {
  const end = Date.now() + PATIENCE_MS / 2;
  while (Date.now() < end) {
    const found = await look();
    if (found) return found;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  throw new Error(`it never came: ${what}`);
}

// The value of a key in the YAML that beanstalk's stats are.
function yamlValue(text, key) {
  const found = new RegExp(`^${key}: "?([^"\n]*)"?$`, 'm').exec(text);
  assert(found, `no ${key} in:\n${text}`);
  return found[1];
}

module.exports = { assert, run, eventually, yamlValue };
