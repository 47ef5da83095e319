raise ImportError("this interpreter has no ssl: a sandbox's Python opens no connections of its own (use curl, if the policy allows it, or pip)", name="_ssl")
