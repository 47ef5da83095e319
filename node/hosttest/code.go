package hosttest

func testShell(t *tester)      {}
func testPython(t *tester)     {}
func testJavaScript(t *tester) {}
func testSessions(t *tester)   {}
func testWarm(t *tester)       {}
