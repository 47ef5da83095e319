// Package harness is what the tests with real clients stand on: the server under test, the tools that drive it, and
// a clean environment for each.
//
// A server is one process with its own data folder, started for one test. Which one it is says AGENTRUN_TEST_SERVER:
// "agentrun" (the default, built from this tree) or "versitygw" (a reference S3 server, so that a test script can be
// checked against something that isn't ours). A tool is a third-party program that test/setup.sh has installed; a
// missing one fails the test and never skips it. A session is a tool's environment: a private home folder, the
// server's endpoint and keys, and nothing of the caller's own cloud configuration.
package harness
