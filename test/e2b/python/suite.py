"""The suite: every method of E2B's SDK against a server, with nothing but the SDK's own environment variables."""
import kit
import sandbox, life, commands, files, gits, contexts, template, volume, errors, limits  # noqa: E401,F401

kit.main()
