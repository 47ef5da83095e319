// Git, which the SDK does with the sandbox's own git.
import { assert, group, shared } from './kit.mjs';

group('git', (step) => {
  const box = shared({ timeoutMs: 240_000 });
  const repo = '/home/user/repo';
  step('Git.init', async () => {
    const s = await box();
    await s.git.init(repo, { initialBranch: 'main' });
    assert.equal(await s.files.exists(`${repo}/.git`), true);
    await s.git.init('/home/user/origin.git', { bare: true, initialBranch: 'main' });
    assert.equal(await s.files.exists('/home/user/origin.git/HEAD'), true);
  });
  step('Git.configureUser', async () => {
    const s = await box();
    await s.git.configureUser('A Suite', 'suite@example.com');
    assert.equal(await s.git.getConfig('user.email'), 'suite@example.com');
  });
  step('Git.setConfig', async () => {
    const s = await box();
    await s.git.setConfig('pull.rebase', 'false', { scope: 'local', path: repo });
    assert.equal(await s.git.getConfig('pull.rebase', { scope: 'local', path: repo }), 'false');
  });
  step('Git.getConfig', async () => {
    const s = await box();
    assert.equal(await s.git.getConfig('user.name'), 'A Suite');
    assert.equal(await s.git.getConfig('no.such'), undefined);
  });
  step('Git.status', async () => {
    const s = await box();
    await s.files.write(`${repo}/a.txt`, 'one\n');
    const st = await s.git.status(repo);
    assert.equal(st.currentBranch, 'main');
    assert.deepEqual(st.fileStatus.map((f) => [f.name, f.status]), [['a.txt', 'untracked']]);
    assert.equal(st.isClean, false);
  });
  step('Git.add', async () => {
    const s = await box();
    await s.git.add(repo);
    const st = await s.git.status(repo);
    assert.deepEqual([st.hasStaged, st.stagedCount], [true, 1]);
  });
  step('Git.commit', async () => {
    const s = await box();
    await s.git.commit(repo, "it's \"first\" $HOME", { authorName: 'Other', authorEmail: 'other@example.com' });
    assert.equal((await s.git.status(repo)).isClean, true);
    assert.equal((await s.commands.run('git log -1 --format="%an %s"', { cwd: repo })).stdout, "Other it's \"first\" $HOME\n");
  });
  step('Git.createBranch', async () => {
    const s = await box();
    await s.git.createBranch(repo, 'topic');
    assert.equal((await s.git.branches(repo)).currentBranch, 'topic');
  });
  step('Git.checkoutBranch', async () => {
    const s = await box();
    await s.git.checkoutBranch(repo, 'main');
    assert.equal((await s.git.branches(repo)).currentBranch, 'main');
  });
  step('Git.branches', async () => {
    const s = await box();
    assert.deepEqual((await s.git.branches(repo)).branches.sort(), ['main', 'topic']);
  });
  step('Git.deleteBranch', async () => {
    const s = await box();
    await s.git.deleteBranch(repo, 'topic', { force: true });
    assert.deepEqual((await s.git.branches(repo)).branches, ['main']);
  });
  step('Git.remoteAdd', async () => {
    const s = await box();
    await s.git.remoteAdd(repo, 'origin', '/home/user/origin.git');
    await s.git.remoteAdd(repo, 'origin', '/home/user/origin.git', { overwrite: true });
    assert.equal(await s.git.remoteGet(repo, 'origin'), '/home/user/origin.git');
  });
  step('Git.remoteGet', async () => {
    const s = await box();
    assert.equal(await s.git.remoteGet(repo, 'nowhere'), undefined);
  });
  step('Git.push', async () => {
    const s = await box();
    await s.git.push(repo, { remote: 'origin', branch: 'main', setUpstream: true });
    assert.match((await s.commands.run('git log --format=%s main', { cwd: '/home/user/origin.git' })).stdout, /first/);
  });
  step('Git.clone', async () => {
    const s = await box();
    await s.git.clone('/home/user/origin.git', { path: '/home/user/clone' });
    assert.equal(await s.files.read('/home/user/clone/a.txt'), 'one\n');
  });
  step('Git.pull', async () => {
    const s = await box();
    await s.files.write(`${repo}/a.txt`, 'two\n');
    await s.git.add(repo, { files: ['a.txt'] });
    await s.git.commit(repo, 'second');
    await s.git.push(repo);
    await s.git.pull('/home/user/clone');
    assert.equal(await s.files.read('/home/user/clone/a.txt'), 'two\n');
  });
  step('Git.restore', async () => {
    const s = await box();
    await s.files.write(`${repo}/a.txt`, 'changed\n');
    await s.git.restore(repo, { paths: ['a.txt'] });
    assert.equal(await s.files.read(`${repo}/a.txt`), 'two\n');
  });
  step('Git.reset', async () => {
    const s = await box();
    await s.git.reset(repo, { mode: 'hard', target: 'HEAD~1' });
    assert.equal(await s.files.read(`${repo}/a.txt`), 'one\n');
  });
  step('Git.dangerouslyAuthenticate', async () => {
    const s = await box();
    await s.git.dangerouslyAuthenticate({ username: 'u', password: 'p', host: 'git.example.com' });
    assert.equal((await s.commands.run('printf "protocol=https\\nhost=git.example.com\\n\\n" | git credential fill')).stdout.includes('password=p'), true);
  });
});
