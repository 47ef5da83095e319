// Templates and their builds.
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { assert, create, fails, group, sdk } from './kit.mjs';

const { BuildError, Template } = sdk;
const mark = `js-${process.pid}`;

group('template', (step) => {
  const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'e2b-context-'));
  fs.mkdirSync(path.join(dir, 'src/sub'), { recursive: true });
  fs.writeFileSync(path.join(dir, 'src/a.txt'), 'copied a');
  fs.writeFileSync(path.join(dir, 'src/sub/b.txt'), 'copied b');
  fs.writeFileSync(path.join(dir, 'one.sh'), '#!/bin/sh\necho one\n', { mode: 0o755 });
  const built = {};
  // build makes a template and returns a sandbox of it.
  const build = async (name, template, opts) => {
    const logs = [];
    built[name] = await Template.build(template, `${name}-${mark}`, { cpuCount: 1, memoryMB: 512, onBuildLogs: (l) => logs.push(l), ...opts });
    return { info: built[name], logs };
  };
  let all;
  // One template has everything, so that one build proves the instructions; each step looks at its own.
  const everything = () => (all ??= (async () => {
    const t = Template({ fileContextPath: dir }).fromBaseImage()
      .setEnvs({ BUILT: 'with env' })
      .setWorkdir('/home/user/app')
      .runCmd('pwd > /home/user/where; id -un >> /home/user/where; echo "$BUILT" >> /home/user/where')
      .runCmd(['echo first > /home/user/list', 'echo second >> /home/user/list'])
      .runCmd('id -un > /root-ran', { user: 'root' })
      .copy('src', '/home/user/copied')
      .copyItems([{ src: 'one.sh', dest: '/home/user/bin/' }, { src: ['src/a.txt', 'src/sub/b.txt'], dest: '/home/user/both/' }])
      .makeDir(['/home/user/dirs/x', '/home/user/dirs/y'], { mode: 0o750 })
      .makeSymlink('/home/user/list', '/home/user/linked')
      .rename('/home/user/dirs/y', '/home/user/dirs/z')
      .runCmd('echo x > /home/user/doomed').remove('/home/user/doomed', { force: true })
      .setUser('user');
    const b = await build('all', t);
    return { ...b, box: await create(b.info.name ?? b.info.alias, { timeoutMs: 240_000 }) };
  })());
  const text = async (file) => (await everything()).box.files.read(file);

  step('Template.build', async () => {
    const { info, logs, box } = await everything();
    assert.ok(info.templateId && info.buildId);
    assert.ok(logs.length > 0, 'it tells what it does');
    assert.ok(logs.every((l) => typeof l.message === 'string' && l.timestamp instanceof Date));
    assert.equal((await box.getInfo()).templateId, info.templateId);
    assert.equal((await box.commands.run('echo up')).stdout, 'up\n');
  });
  step('Template.fromBaseImage', async () => { assert.equal((await (await everything()).box.commands.run('id -un')).stdout, 'user\n'); });
  step('Template.runCmd', async () => {
    assert.equal(await text('/home/user/list'), 'first\nsecond\n');
    assert.equal(await (await everything()).box.files.read('/root-ran', { user: 'root' }), 'root\n');
  });
  step('Template.setEnvs', async () => {
    assert.match(await text('/home/user/where'), /with env\n/);
    assert.equal((await (await everything()).box.commands.run('echo "$BUILT"')).stdout, 'with env\n');
  });
  step('Template.setWorkdir', async () => {
    assert.match(await text('/home/user/where'), /^\/home\/user\/app\n/);
    assert.equal((await (await everything()).box.commands.run('pwd')).stdout, '/home/user/app\n');
  });
  step('Template.setUser', async () => { assert.match(await text('/home/user/where'), /\nuser\n/); });
  step('Template.copy', async () => {
    assert.equal(await text('/home/user/copied/a.txt'), 'copied a');
    assert.equal(await text('/home/user/copied/sub/b.txt'), 'copied b');
  });
  step('Template.copyItems', async () => {
    assert.equal((await (await everything()).box.commands.run('/home/user/bin/one.sh')).stdout, 'one\n');
    assert.equal(await text('/home/user/both/b.txt'), 'copied b');
  });
  step('Template.makeDir', async () => { assert.equal((await (await everything()).box.commands.run('stat -c %a /home/user/dirs/x')).stdout, '750\n'); });
  step('Template.makeSymlink', async () => { assert.equal(await text('/home/user/linked'), 'first\nsecond\n'); });
  step('Template.rename', async () => { assert.deepEqual((await (await everything()).box.files.list('/home/user/dirs')).map((e) => e.name), ['x', 'z']); });
  step('Template.remove', async () => { assert.equal(await (await everything()).box.files.exists('/home/user/doomed'), false); });
  step('Template.fromTemplate', async () => {
    await everything();
    const { info } = await build('child', Template().fromTemplate(built.all.name ?? built.all.alias).runCmd('cat /home/user/list > /home/user/child'));
    const s = await create(info.templateId, { timeoutMs: 60_000 });
    assert.equal(await s.files.read('/home/user/child'), 'first\nsecond\n');
    assert.equal((await s.commands.run('echo "$BUILT"')).stdout, 'with env\n');
    await s.kill();
  });
  step('Template.fromDockerfile', async () => {
    const { info } = await build('docker', Template({ fileContextPath: dir }).fromDockerfile('FROM e2bdev/base\nENV IN=docker\nWORKDIR /srv\nCOPY one.sh /srv/\nRUN echo $IN > /srv/out\n'));
    const s = await create(info.templateId, { timeoutMs: 60_000 });
    assert.equal(await s.files.read('/srv/out'), 'docker\n');
    await s.kill();
  });
  step('Template.setStartCmd', async () => {
    const { info } = await build('start', Template().fromBaseImage().setStartCmd('while :; do date +%s%N > /home/user/beat; sleep 0.2; done', sdk.waitForFile('/home/user/beat')));
    const s = await create(info.templateId, { timeoutMs: 60_000 });
    const beat = await s.files.read('/home/user/beat');
    for (let i = 0; i < 200 && (await s.files.read('/home/user/beat')) === beat; i++) await new Promise((r) => setTimeout(r, 100));
    assert.notEqual(await s.files.read('/home/user/beat'), beat, 'the start command runs');
    await s.kill();
  });
  step('Template.setReadyCmd', async () => {
    const { info } = await build('ready', Template().fromBaseImage().runCmd('touch /home/user/r').setReadyCmd('test -e /home/user/r'));
    assert.ok(info.templateId);
  });
  step('Template.build: fails', async () => {
    await fails(build('broken', Template().fromBaseImage().runCmd('echo about to fail; exit 3')), BuildError);
    await fails(create(`broken-${mark}`), sdk.SandboxError);
    await fails(build('nothing', Template().fromTemplate('no-such-template')), Error, /no-such-template/);
  });
  step('Template.build: once more', async () => {
    const again = await build('start', Template().fromBaseImage().runCmd('echo second > /home/user/second'));
    const s = await create(again.info.templateId, { timeoutMs: 60_000 });
    assert.equal(await s.files.read('/home/user/second'), 'second\n', 'its newest build counts');
    await s.kill();
  });
  step('Template.skipCache', async () => {
    const { info } = await build('fresh', Template().skipCache().fromBaseImage().runCmd('echo fresh > /home/user/fresh'));
    assert.ok(info.buildId);
  });
  step('Template.buildInBackground', async () => {
    const info = await Template.buildInBackground(Template().fromBaseImage().runCmd('echo bg > /home/user/bg'), `bg-${mark}`, { cpuCount: 1, memoryMB: 512 });
    built.bg = info;
    assert.ok(info.templateId && info.buildId);
  });
  step('Template.getBuildStatus', async () => {
    let s;
    for (let i = 0; i < 300; i++) {
      s = await Template.getBuildStatus(built.bg);
      if (s.status === 'ready' || s.status === 'error') break;
      await new Promise((r) => setTimeout(r, 100));
    }
    assert.deepEqual([s.status, s.templateID, s.buildID], ['ready', built.bg.templateId, built.bg.buildId]);
  });
  step('Template.exists', async () => {
    await everything();
    assert.equal(await Template.exists(`all-${mark}`), true);
    assert.equal(await Template.exists(`none-${mark}`), false);
    assert.equal(await Template.exists('base'), true);
  });
  step('Template.aliasExists', async () => {
    await everything();
    assert.equal(await Template.aliasExists(`all-${mark}`), true);
    assert.equal(await Template.aliasExists(`none-${mark}`), false);
  });
  step('Template.assignTags', async () => {
    await everything();
    const i = await Template.assignTags(`all-${mark}`, ['stable', 'v1']);
    assert.deepEqual(i.tags.map((t) => t.split(':').at(-1)).sort(), ['stable', 'v1']);
    const s = await create(`all-${mark}:stable`, { timeoutMs: 60_000 });
    assert.equal(await s.files.read('/home/user/list'), 'first\nsecond\n');
    await s.kill();
  });
  step('Template.getTags', async () => {
    const tags = await Template.getTags(built.all.templateId);
    assert.ok(['stable', 'v1'].every((t) => tags.some((x) => x.tag === t && x.buildId === built.all.buildId)), JSON.stringify(tags));
  });
  step('Template.removeTags', async () => {
    await Template.removeTags(`all-${mark}`, 'v1');
    assert.ok(!(await Template.getTags(built.all.templateId)).some((x) => x.tag === 'v1'));
  });
  step('Template.toJSON', async () => {
    const j = JSON.parse(await Template.toJSON(Template().fromBaseImage().runCmd('true')));
    assert.equal(j.steps[0].type, 'RUN');
  });
  step('Template.toDockerfile', async () => {
    assert.match(Template.toDockerfile(Template().fromImage('debian').runCmd('true')), /^FROM debian\nRUN true/);
  });
  step('Template.pipInstall', async () => {
    // Its own folder is a package that needs no index.
    const t = Template().fromBaseImage().runCmd("mkdir -p /home/user/pkg/own && cd /home/user/pkg && printf 'VALUE = 7\\n' >own/__init__.py && printf '[project]\\nname = \"own\"\\nversion = \"1\"\\n' >pyproject.toml").setWorkdir('/home/user/pkg').pipInstall('.');
    assert.match(Template.toDockerfile(Template().fromImage('debian').pipInstall(['numpy', 'six'])), /pip install .*numpy six/);
    assert.ok(t);
  });
});
