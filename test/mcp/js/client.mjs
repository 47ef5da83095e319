// client.mjs TRANSPORT: goes through a server of MCP with the official SDK for TypeScript, and prints a line for each step: "ok STEP" or
// "not ok STEP: WHY". TRANSPORT is stdio, for which COMMAND is a JSON array, or http, for URL and KEY. VIEWER is a key that may only look.
import assert from 'node:assert/strict'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { ResourceUpdatedNotificationSchema } from '@modelcontextprotocol/sdk/types.js'

const { COMMAND, URL: url, KEY, VIEWER } = process.env
const stdio = process.argv[2] === 'stdio'
const updates = []

async function connect(key) {
  const client = new Client({ name: 'typescript', version: '1' })
  client.setNotificationHandler(ResourceUpdatedNotificationSchema, (n) => void updates.push(n.params.uri))
  if (stdio) {
    const [command, ...args] = JSON.parse(COMMAND)
    await client.connect(new StdioClientTransport({ command, args: [...args, '--key', key], env: process.env, stderr: 'inherit' }))
  } else {
    await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers: { Authorization: `Bearer ${key}` } } }))
  }
  return client
}

const client = await connect(KEY)
let failed = 0
async function step(name, f) {
  try {
    await f()
    console.log(`ok ${name}`)
  } catch (e) {
    failed++
    console.log(`not ok ${name}: ${String(e?.stack ?? e).replaceAll('\n', ' | ')}`)
  }
}
const call = (name, args = {}, options) => client.callTool({ name, arguments: args }, undefined, options)
const words = (r) => r.content.map((c) => c.text ?? '').join('')
async function does(name, args, options) {
  const r = await call(name, args, options)
  assert.ok(!r.isError, `${name}: ${words(r)}`)
  return r.structuredContent ?? words(r)
}
async function fails(name, args, ...want) {
  const r = await call(name, args)
  assert.ok(r.isError, `${name} did it: ${words(r)}`)
  for (const w of want) assert.ok(words(r).includes(w), `${name} says ${words(r)}, want ${w}`)
}
async function until(what, f) {
  for (let i = 0; i < 1200; i++) {
    if (await f()) return
    await new Promise((r) => setTimeout(r, 50))
  }
  throw new Error(`never: ${what}`)
}

await step('initialize', () => {
  assert.equal(client.getServerVersion().name, 'agentrun')
  assert.match(client.getInstructions(), /fork_sandbox/)
  assert.equal(client.getServerCapabilities().resources.subscribe, true)
})
await step('ping', () => client.ping())
await step('tools', async () => {
  const { tools } = await client.listTools()
  const by = Object.fromEntries(tools.map((t) => [t.name, t]))
  for (const name of ['create_sandbox', 'exec', 'run_code', 'read_file', 'write_file', 'edit_file', 'list_files', 'search_files', 'find_files', 'fork_sandbox',
    'diff_sandboxes', 'merge_sandbox', 'snapshot_sandbox', 'hibernate_sandbox', 'resume_sandbox', 'terminate_sandbox', 'list_sandboxes']) assert.ok(by[name], name)
  assert.equal(by.read_file.annotations.readOnlyHint, true)
  assert.equal(by.terminate_sandbox.annotations.destructiveHint, true)
  assert.equal(by.exec.outputSchema.properties.exit_code.type, 'integer')
  assert.deepEqual(by.exec.inputSchema.required, ['command'])
})
await step('exec', async () => {
  const r = await does('exec', { command: 'echo out; echo err >&2; exit 3' })
  assert.deepEqual([r.exit_code, r.stdout, r.stderr], [3, 'out\n', 'err\n'])
})
await step('progress', async () => {
  // What is told together with the end may come after it: the command waits until it was heard.
  const messages = []
  const heard = (n) => `until [ -e heard${n} ]; do sleep 0.05; done`
  const running = does('exec', { command: `echo one; ${heard(1)}; echo two; ${heard(2)}` }, { onprogress: (p) => void messages.push(p.message) })
  for (const [n, word] of [[1, 'one'], [2, 'two']]) {
    await until('progress', () => messages.join('').includes(word))
    await does('write_file', { path: `heard${n}`, content: '' })
  }
  await running
  assert.ok(messages.length >= 2, JSON.stringify(messages))
})
await step('timeout', async () => assert.equal((await does('exec', { command: 'sleep 60', timeout_seconds: 0.2 })).timed_out, true))
await step('cancel', async () => {
  const abort = new AbortController()
  const running = call('exec', { command: 'sleep 600' }, { signal: abort.signal, timeout: 600_000 })
  await until('begun', async () => words(await call('list_processes')).includes('sleep'))
  abort.abort('enough')
  await assert.rejects(running)
  await until('ended', async () => !words(await call('list_processes')).includes('sleep'))
})
await step('python', async () => {
  await does('run_code', { language: 'python', code: 'x = 6' })
  assert.equal((await does('run_code', { language: 'python', code: 'x * 7' })).result, '42')
})
await step('files', async () => {
  await does('write_file', { path: 'src/a.txt', content: 'alpha\nbeta\n' })
  await fails('edit_file', { path: 'src/a.txt', old_string: 'a', new_string: 'b' }, 'times in the file', 'replace_all')
  await does('edit_file', { path: 'src/a.txt', old_string: 'beta', new_string: 'gamma' })
  assert.equal(await does('read_file', { path: 'src/a.txt' }), 'alpha\ngamma\n')
  assert.equal((await does('list_files', { path: 'src' })).entries[0].path, '/workspace/src/a.txt')
  assert.deepEqual((await does('search_files', { pattern: 'gam+a' })).matches, [{ path: 'src/a.txt', line: 2, text: 'gamma' }])
  assert.deepEqual((await does('find_files', { pattern: '*.txt' })).paths, ['src/a.txt'])
  await fails('read_file', { path: 'gone' }, 'no such file')
})
await step('output', async () => {
  const r = await does('exec', { command: 'seq 1 30000' })
  assert.ok(r.stdout.length < 22_000 && r.stdout.includes('bytes left out'))
  assert.match(await does('read_file', { path: r.stdout_file, offset: 29_999 }), /^29999\n30000\n/)
})
const own = (await does('get_sandbox')).id
await step('forks', async () => {
  const { sandboxes } = await does('fork_sandbox', { count: 2 })
  await does('write_file', { path: 'new', content: 'x', sandbox: sandboxes[0].id })
  assert.deepEqual((await does('diff_sandboxes', { from: own, to: sandboxes[0].id })).changes.map((c) => [c.kind, c.path]), [['added', '/workspace/new']])
  assert.equal((await does('merge_sandbox', { source: sandboxes[0].id })).merged, true)
  assert.equal(await does('read_file', { path: 'new' }), 'x')
  await does('write_file', { path: 'new', content: 'theirs', sandbox: sandboxes[1].id })
  await fails('merge_sandbox', { source: sandboxes[1].id }, '/workspace/new')
  for (const s of sandboxes) await does('terminate_sandbox', { sandbox: s.id })
  await fails('exec', { command: 'true', sandbox: sandboxes[0].id }, 'has ended')
})
await step('states', async () => {
  assert.equal((await does('hibernate_sandbox')).state, 'hibernated')
  assert.equal((await does('resume_sandbox')).state, 'running')
  const snapshot = (await does('snapshot_sandbox')).id
  const made = (await does('create_sandbox', { snapshot })).id
  assert.equal(await does('read_file', { path: 'new', sandbox: made }), 'x')
  await does('terminate_sandbox', { sandbox: made })
})
await step('resources', async () => {
  await does('exec', { command: "printf '\\0\\377' > bin" })
  const uri = `sandbox://${own}/workspace/`
  assert.equal((await client.readResource({ uri: uri + 'src/a.txt' })).contents[0].text, 'alpha\ngamma\n')
  assert.equal((await client.readResource({ uri: uri + 'bin' })).contents[0].blob, Buffer.from([0, 255]).toString('base64'))
  const { resources } = await client.listResources()
  assert.ok(resources.some((r) => r.uri === uri + 'src/a.txt'))
  assert.equal((await client.listResourceTemplates()).resourceTemplates[0].uriTemplate, 'sandbox://{id}/{+path}')
  await assert.rejects(client.readResource({ uri: uri + 'gone' }), /not found/i)
})
await step('subscribe', async () => {
  const uri = `sandbox://${own}/workspace/src/a.txt`
  await client.subscribeResource({ uri })
  await does('write_file', { path: 'src/a.txt', content: 'changed' })
  await until('an update', () => updates.includes(uri))
  await client.unsubscribeResource({ uri })
})
await step('prompts', async () => {
  assert.ok((await client.listPrompts()).prompts.some((p) => p.name === 'try_variants'))
  assert.match((await client.getPrompt({ name: 'try_variants', arguments: { task: 'sort' } })).messages[0].content.text, /Task: sort/)
})
await step('complete', async () => {
  const r = await client.complete({ ref: { type: 'ref/resource', uri: 'sandbox://{id}/{+path}' }, argument: { name: 'id', value: own.slice(0, 20) } })
  assert.ok(r.completion.values.includes(own))
})
await step('arguments', async () => {
  await fails('exec', { comand: 'true' }, 'comand')
  await fails('exec', { command: 'x'.repeat(2 << 20) }, 'write_file')
})
await step('denied', async () => {
  const viewer = await connect(VIEWER)
  const r = await viewer.callTool({ name: 'exec', arguments: { command: 'true' } })
  assert.ok(r.isError && r.content[0].text.startsWith('Denied: ') && r.content[0].text.includes('The rule that denied it'), words(r))
  await viewer.close()
})
await step('wrong key', async () => {
  if (stdio) return assert.rejects(connect('AKIAAGENTRUNTEST.wrong'))
  await assert.rejects(connect('AKIAAGENTRUNTEST.wrong'), /401|[Uu]nauthorized|isn't valid/)
})
await step('expired sandbox', async () => {
  await does('terminate_sandbox', { sandbox: 'own' })
  await fails('read_file', { path: 'new' }, 'no such file')
  assert.notEqual((await does('get_sandbox')).id, own)
})
await client.close()
process.exit(failed ? 1 : 0)
