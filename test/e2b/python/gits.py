"""Git, which the SDK does with the sandbox's own git."""
from kit import a, equal, shared, since, step

box = shared(timeout=240)
REPO = "/home/user/repo"
HAS = since("2.63.0")


@step("git", "Git.init", HAS)
async def _():
    s = await box()
    await a(s.git.init(REPO, initial_branch="main"))
    await a(s.git.init("/home/user/origin.git", bare=True, initial_branch="main"))
    equal(await a(s.files.exists(REPO + "/.git")), True)


@step("git", "Git.configure_user", HAS)
async def _():
    s = await box()
    await a(s.git.configure_user("A Suite", "suite@example.com"))
    equal(await a(s.git.get_config("user.email")), "suite@example.com")


@step("git", "Git.set_config", HAS)
async def _():
    s = await box()
    await a(s.git.set_config("pull.rebase", "false", scope="local", path=REPO))
    equal(await a(s.git.get_config("pull.rebase", scope="local", path=REPO)), "false")


@step("git", "Git.get_config", HAS)
async def _():
    s = await box()
    equal(await a(s.git.get_config("no.such")), None)


@step("git", "Git.status", HAS)
async def _():
    s = await box()
    await a(s.files.write(REPO + "/a.txt", "one\n"))
    st = await a(s.git.status(REPO))
    equal((st.current_branch, [(f.name, f.status) for f in st.file_status]), ("main", [("a.txt", "untracked")]))


@step("git", "Git.add", HAS)
async def _():
    s = await box()
    await a(s.git.add(REPO))
    equal((await a(s.git.status(REPO))).staged_count, 1)


@step("git", "Git.commit", HAS)
async def _():
    s = await box()
    await a(s.git.commit(REPO, "first", author_name="Other", author_email="other@example.com"))
    equal((await a(s.git.status(REPO))).is_clean, True)


@step("git", "Git.create_branch", HAS)
async def _():
    s = await box()
    await a(s.git.create_branch(REPO, "topic"))
    equal((await a(s.git.branches(REPO))).current_branch, "topic")


@step("git", "Git.checkout_branch", HAS)
async def _():
    s = await box()
    await a(s.git.checkout_branch(REPO, "main"))
    equal((await a(s.git.branches(REPO))).current_branch, "main")


@step("git", "Git.branches", HAS)
async def _():
    s = await box()
    equal(sorted((await a(s.git.branches(REPO))).branches), ["main", "topic"])


@step("git", "Git.delete_branch", HAS)
async def _():
    s = await box()
    await a(s.git.delete_branch(REPO, "topic", force=True))
    equal((await a(s.git.branches(REPO))).branches, ["main"])


@step("git", "Git.remote_add", HAS)
async def _():
    s = await box()
    await a(s.git.remote_add(REPO, "origin", "/home/user/origin.git"))
    equal(await a(s.git.remote_get(REPO, "origin")), "/home/user/origin.git")


@step("git", "Git.remote_get", HAS)
async def _():
    s = await box()
    equal(await a(s.git.remote_get(REPO, "nowhere")), None)


@step("git", "Git.push", HAS)
async def _():
    s = await box()
    await a(s.git.push(REPO, remote="origin", branch="main", set_upstream=True))
    assert "first" in (await a(s.commands.run("git log --format=%s main", cwd="/home/user/origin.git"))).stdout


@step("git", "Git.clone", HAS)
async def _():
    s = await box()
    await a(s.git.clone("/home/user/origin.git", path="/home/user/clone"))
    equal(await a(s.files.read("/home/user/clone/a.txt")), "one\n")


@step("git", "Git.pull", HAS)
async def _():
    s = await box()
    await a(s.files.write(REPO + "/a.txt", "two\n"))
    await a(s.git.add(REPO, files=["a.txt"]))
    await a(s.git.commit(REPO, "second"))
    await a(s.git.push(REPO))
    await a(s.git.pull("/home/user/clone"))
    equal(await a(s.files.read("/home/user/clone/a.txt")), "two\n")


@step("git", "Git.restore", HAS)
async def _():
    s = await box()
    await a(s.files.write(REPO + "/a.txt", "changed\n"))
    await a(s.git.restore(REPO, paths=["a.txt"]))
    equal(await a(s.files.read(REPO + "/a.txt")), "two\n")


@step("git", "Git.reset", HAS)
async def _():
    s = await box()
    await a(s.git.reset(REPO, mode="hard", target="HEAD~1"))
    equal(await a(s.files.read(REPO + "/a.txt")), "one\n")


@step("git", "Git.dangerously_authenticate", HAS)
async def _():
    s = await box()
    await a(s.git.dangerously_authenticate(username="u", password="p", host="git.example.com"))
    assert "password=p" in (await a(s.commands.run('printf "protocol=https\\nhost=git.example.com\\n\\n" | git credential fill'))).stdout
